"""Word tables of the offline rules, English and Chinese."""

from collections.abc import Mapping

from lightrag_jsonl.core.text import words

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
