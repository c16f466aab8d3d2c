"""Word tables of the offline rules, English and Chinese."""

from collections.abc import Mapping

from lightrag_jsonl.core.text import words

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
    would yet you your yours yourself yourselves alas hereby thereby therein thereupon unless
    whereas whereat whereby wherein whereupon"""
    " 的 了 和 是 在 有 我 你 他 她 它 们 这 那 之 与 及 或 而 但 也 都 就 还 又 被 把 为 对 从 到 于 以 其 此 何"
    " 什么 怎么 怎样 如何 哪 哪里 哪个 哪些 哪位 谁 吗 呢 吧 多少 几 几个 为何 为什么 是否 是什么 有什么 请问 什么样"
    " 一个 一种 一些 这个 那个 这些 那些 我们 你们 他们 它们 自己 可以 没有 不是 就是 所以 因为 因此 如果 但是 而且"
    " 以及 并且 或者 由于 关于 对于 根据 通过 之间 之后 之前 其中 其他 主要 属于 位于 叫 做 叫做 名叫 称为 成为 作为"
    " 使用 进行 开始 认为 包括 不 没 很 最 更 只 才 曾 将 会 能 要 可 所 由 等 上 下 中 里 内 外 前 后 时 者 个 位 名"
)
QUESTION_WORDS = words(
    """what which who whom whose when where why how many much name named called tell describe explain
    list give year kind type sort person thing following did does do is are was were can could"""
    " 什么 什么是 怎么 怎样 如何 哪 哪里 哪个 哪些 哪位 谁 多少 几 几个 为何 为什么 是否 何时 何地 何人 何处 哪年 哪一年 哪种"
    " 哪两个 哪国 哪一 介绍 说明 解释 请问 告诉 列举 描述 全称 时候 东西 名称 名字 意思"
)
FUNCTION_WORDS = STOP_WORDS | QUESTION_WORDS
TITLES = words("mr. mrs. ms. miss dr. prof. sir lady lord gen. col. captain mr mrs ms dr prof")
CALENDAR = words(
    "january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday"
)
SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧田董潘袁蔡蒋余于杜叶程魏苏吕丁任沈"
    "姚卢姜崔钟谭陆汪范廖石贾韦夏傅方邹熊白孟秦邱侯江尹薛闫段雷龙史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤"
    "康易乔赖文庞樊殷施洪翟安颜倪牛温芦季俞章鲁葛伍申尤毕聂柴焦路岳齐梅庄辛管祝左涂谷祁时舒耿牟卜詹关苗"
    "凌费纪靳盛童欧甄项曲游阳裴席卫查屈鲍覃霍翁隋甘景薄单包司柏宁柯阮桂闵解强丘华车冉房边鞠荀糜法廖阎滕"
    "纪伊伏审沮逢辛娄朴典乐蒯蹋臧夷步虞骆留州太胥诸欧慕皇令独班尉"
)

_TYPE_WORDS: Mapping[str, str] = {  # last or first words of names, and nouns after "X is a …"
    "person": """actor actress singer writer author novelist poet politician player director producer
    composer musician painter artist journalist scientist philosopher king queen emperor president
    soldier officer engineer son daughter brother sister wife husband person man woman character""",
    "organization": """university college school institute company inc ltd co group band orchestra club
    team party association society union council committee agency department ministry bank army church
    foundation organization government court network museum library hospital press records studios
    laboratory academy""",
    "place": """city town village river lake mountain island islands sea ocean street road square park
    bridge airport castle county district province state states country region valley building palace
    hall mount new north south""",
    "event": """war battle revolution championship cup tournament festival election season day conference
    congress""",
    "concept": """prize prizes medal award project physics chemistry medicine literature mathematics
    biology economics""",
    "work": """film movie novel book album song single series show play opera musical symphony poem
    magazine newspaper painting story carol""",
    "product": "aircraft car ship engine camera computer software game drug vehicle",
    "method": "algorithm method technique theorem theory process protocol",
    "creature": "species genus dog cat horse bird fish plant tree ghost spirit god",
}
NOT_PLACES = words(
    "哥哥 英雄 匹夫 莫非 之士 东西 城市 都城 郡县 上马 下马 立马 上山 下山 入城 渡江 渡河 渡海 回国 开窟"
)
TYPES: Mapping[str, str] = {
    word: type for type, listed in _TYPE_WORDS.items() for word in listed.split()
}
