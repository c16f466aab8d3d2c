"""Word tables of the English reader."""

from __future__ import annotations

from collections.abc import Mapping

from lightrag_jsonl.adapters.offline.phrases import Sort


def words(listed: str) -> frozenset[str]:
    """The words of a table that is written as one string."""
    return frozenset(listed.split())


def by_word(listed: Mapping[Sort, str]) -> Mapping[str, Sort]:
    """The sort of each word, from a table that lists words by sort."""
    return {word: sort for sort, row in listed.items() for word in row.split()}


STOP_WORDS = words(
    """a about above across after again against all almost along already also although always am
    among an and another any are aren't around as at away back be became because become been before
    began being below between both but by came can can't cannot come could couldn't did didn't do
    does doesn't doing don't done down during each either else enough even ever every few first for
    from further get give go goes going gone got had hadn't has hasn't have haven't having he her
    here hers herself him himself his how however i if in indeed instead into is isn't it its itself
    just keep kept know known last later least less let like made make many may me might mine more
    most much must my myself near nearly neither never next no nor not nothing now of off often on
    once one only onto or other others ought our ours ourselves out over own part per perhaps put
    quite rather really said same saw say says see seem seemed seen several shall she should since so
    some something soon still such take taken than that the their theirs them themselves then there
    therefore these they thing things this those though through thus till to together too took toward
    towards two under until up upon us use used very was wasn't way we well went were weren't what
    whatever when whence where whether which while who whom whose why will with within without won't
    would yet you your yours yourself yourselves"""
)
QUESTION_WORDS = words(
    """what which who whom whose when where why how many much name named called tell describe explain
    list give year kind type sort person thing following did does do is are was were can could"""
)
PRONOUNS = words("he she it they his her its their this these")
INTERJECTIONS = words(
    """oh ah yes no well hello hallo hi hey alas bah humbug god lord sir ma'am madam hurrah dear
    heaven o amen ok okay please thanks lo hush pooh ay aye nay"""
)
TITLES = words(
    """mr. mrs. ms. miss dr. prof. sir lady lord madame rev. capt. captain gen. col. lt. sgt. mr mrs ms
    dr prof rev capt gen col lt sgt gov. sen. hon. messrs. uncle aunt king queen prince princess saint"""
)
COURTESY = words("mr. mr ms. ms")
ROLES = words(
    """president minister prime director actor actress senator governor producer author writer singer
    professor chairman coach mayor emperor judge justice secretary chancellor vice former then actor
    composer guitarist drummer footballer journalist"""
)
CALENDAR = words(
    """january february march april may june july august september october november december monday
    tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sep sept oct nov dec
    am pm ad bc bce ce"""
)
PARTICLES = words(
    "de del della di da das dos du van von der den ter ten la le les el al bin ibn y zu af ap"
)
JOINED_BY_FOR = words(
    """center centre institute society committee foundation academy association school campaign
    department office council museum award prize agency commission organization organisation bureau
    fund league national board network"""
)
WEAK_ADJECTIVES = words(
    """other same such many first second third last own new several certain more most few little old
    great good long whole next various different main major particular former early late small large
    big young best better full poor dear very full only similar able own certain much present true"""
)
WEAK_NOUNS = words(
    """man men woman thing things time times day days year years way ways part lot kind sort number end
    side place people person one ones name names case fact word words hand hands eye eyes head face
    something nothing anything everything anyone everyone someone nobody round half moment door mr illustration page chapter use start
    type piece bit deal rest order matter life world none sense course back front top bottom"""
)

FIRST_NAMES = words(
    """aaron abigail drew adam alan albert alex alexander alfred alice amanda amy andrea andrew angela anna
    anne anthony antonio arthur barbara ben benjamin bernard bill billy bob brandon brian bruce carl
    carlos carol caroline catherine charles charlie charlotte chris christian christopher claire clara
    daniel david dean deborah dennis diana donald dorothy douglas ebenezer edgar edith edward edwin
    eleanor elizabeth ella emily emma eric ernest eugene eva evelyn fanny francis frank franklin fred
    frederick gary geoffrey george gerald gordon grace graham grant greg gregory hannah hans harold
    harriet harry harvey heather helen henry herbert howard hugh ian isaac isabella jack jacob jacques
    james jan jane janet jason jean jeff jeffrey jennifer jeremy jerry jessica jim jimmy joan joe johann
    john johnny jon jonathan jose joseph joshua juan julia julian julie karen karl kate katherine keith
    kelly kenneth kevin kim larry laura lauren lawrence lee leo leonard leslie lester lewis linda lisa
    louis louise lucy luis luke margaret maria marie mark martha martin mary matthew max michael michelle
    miguel mike mohammed muhammad nancy nathan nicholas nick nicole norman oliver oscar pamela patricia
    patrick paul pedro peter philip phillip pierre rachel ralph raymond rebecca richard rita robert robin
    roger ronald rose roy russell ruth ryan sam samantha samuel sandra sara sarah scott sean sharon simon
    sophia stanley stephanie stephen steve steven stuart susan ted teresa terry theodore theresa thomas
    tim timothy tina tom tony tyler vanessa victor victoria vincent virginia walter warren wayne wendy
    william woody zoe"""
)
PLACES = words(
    """africa america asia europe australia antarctica england scotland wales ireland britain france
    germany spain portugal italy greece turkey russia ukraine poland austria hungary switzerland belgium
    netherlands denmark norway sweden finland iceland china japan korea india pakistan bangladesh nepal
    thailand vietnam indonesia malaysia singapore philippines iran iraq israel egypt nigeria kenya ghana
    ethiopia morocco mexico brazil argentina chile peru colombia venezuela cuba canada alabama alaska
    arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho illinois
    indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi
    missouri montana nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah vermont
    virginia wisconsin wyoming london paris berlin madrid rome moscow vienna tokyo beijing shanghai
    delhi mumbai sydney melbourne toronto chicago boston philadelphia seattle houston dallas atlanta
    detroit miami manchester liverpool birmingham edinburgh glasgow dublin brooklyn manhattan queensland
    ontario quebec yorkshire sussex kent cornwall cambridge oxford copenhagen stockholm amsterdam usa uk u.s. u.k. u.s.a. zealand namibia niger"""
)
DEMONYM_ENDINGS = ("ian", "ish", "ese", "ean", "ican", "ench", "utch", "reek", "erman")

SPEECH = words(
    """said says cried asked replied answered thought whispered exclaimed returned observed wrote told
    born died married sang sings"""
)


# The sort that is shown by a name's last word, or by the noun after "X is a …".
HEADS: Mapping[str, Sort] = by_word(
    {
        "person": """actor actress singer writer author novelist poet politician footballer player director
    producer composer musician painter artist journalist lawyer physicist chemist mathematician
    scientist philosopher historian king queen emperor president minister guitarist drummer rapper
    bishop priest soldier officer businessman businesswoman entrepreneur architect engineer coach
    wrestler boxer cyclist swimmer model comedian screenwriter son daughter brother sister wife husband
    person man woman character clerk nephew uncle professor judge lecturer songwriter frontman athlete
    activist pianist dancer critic""",
        "organization": """university college school institute academy company corporation corp corp. inc inc.
    ltd ltd. co. group band orchestra club team party association society union league council committee
    commission agency department ministry bank army navy church foundation organization organisation
    government parliament congress senate court firm brewery airline airlines network channel station
    museum library hospital press records label bros. fc f.c. police force regiment division fraternity
    charity enterprise studio studios publisher brothers duo trio quartet chain brand federation""",
        "place": """city town village river lake mountain mount island islands sea ocean bay street avenue road
    square park bridge airport castle county district province state country region municipality suburb
    capital peninsula valley forest desert canyon creek hill hills beach building tower palace cathedral
    stadium arena house hall garden gardens harbour harbor port township borough neighborhood
    neighbourhood commune settlement territory kingdom empire republic republics states kingdom temple cemetery highway
    theatre theater hotel prison""",
        "event": """war battle revolution olympics championship championships cup tournament festival election
    elections games treaty massacre siege uprising conference congress season series-final race
    ceremony massacre earthquake disaster expedition campaign crisis christmas""",
        "work": """film movie novel book album song single series show sitcom play opera musical symphony poem
    magazine journal newspaper painting sculpture documentary episode comic manga anime ballet
    soundtrack ep trilogy story stories memoir sequel drama programme comedy novella essay carol
    bible dictionary encyclopedia""",
        "product": """aircraft car automobile ship locomotive engine camera computer software game videogame
    console phone smartphone rifle pistol tank missile beer wine drug vehicle motorcycle helicopter
    operating-system""",
        "method": "algorithm method technique theorem theory procedure process protocol",
        "creature": """species genus breed dog cat horse bird fish plant tree flower beetle moth butterfly spider
    snake ghost spirit demon god goddess dinosaur mammal reptile insect""",
    }
)
