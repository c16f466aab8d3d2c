"""The lenses of an index: promises beside its search, each a file here and a row of this table."""

from lightrag_jsonl.lenses.as_of import AsOf
from lightrag_jsonl.lenses.claim_dates import ClaimDates
from lightrag_jsonl.lenses.claims import ClaimMemory
from lightrag_jsonl.lenses.communities import CommunityMemory
from lightrag_jsonl.lenses.conflicts import Conflicts
from lightrag_jsonl.lenses.listing import Listings
from lightrag_jsonl.lenses.overview import Overviews
from lightrag_jsonl.retrieval.lens import Lens


def index_lenses(claims: ClaimMemory, communities: CommunityMemory) -> tuple[Lens, ...]:
    """The lenses of an index, in the order of their sections in the prompt."""
    return (AsOf(claims), ClaimDates(), Conflicts(claims), Listings(), Overviews(communities))
