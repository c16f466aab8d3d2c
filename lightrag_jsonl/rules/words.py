"""Word tables of the offline rules."""

from collections.abc import Mapping


def _base_by_form(table: str) -> Mapping[str, str]:
    """The base form of each other form; each row of the table is a verb and its other forms."""
    bases: dict[str, str] = {}
    for row in table.split(";"):
        base, *forms = row.split()
        bases.update(dict.fromkeys(forms, base))
    return bases


# The base form of each irregular form, for verbs of the content; forms of two verbs (found, lay) and those
# that are mostly other words (bit, bore, born, wound) are left out.
VERB_BASES = _base_by_form(
    """beat beaten; blow blew blown; break broke broken; breed bred; bring brought; build built; buy bought;
    catch caught; choose chose chosen; creep crept; dig dug; draw drew drawn; dream dreamt;
    drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt;
    fight fought; flee fled; fly flew flown; forbid forbade forbidden; forget forgot forgotten;
    forgive forgave forgiven; freeze froze frozen; grow grew grown; hang hung; hear heard; hide hid hidden;
    hold held; lead led; learn learnt; leave left; lend lent; light lit; lose lost; meet met;
    overcome overcame; oversee oversaw overseen; overtake overtook overtaken; ride rode ridden;
    ring rang rung; rise rose risen; run ran; seek sought; sell sold; send sent; shake shook shaken;
    shine shone; shoot shot; sing sang sung; sink sank sunk; sit sat; slay slew slain; sleep slept;
    speak spoke spoken; spend spent; stand stood; steal stole stolen; stick stuck; strike struck;
    swear swore sworn; sweep swept; swim swam swum; swing swung; teach taught; tear tore torn; tell told;
    think thought; throw threw thrown; understand understood; undergo underwent undergone;
    undertake undertook undertaken; wake woke woken; wear wore worn; weep wept; win won;
    withdraw withdrew withdrawn; write wrote written"""
)
