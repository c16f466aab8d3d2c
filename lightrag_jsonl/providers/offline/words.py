"""Word tables of the offline rules, English and Chinese."""

from collections.abc import Mapping

from lightrag_jsonl.core.text import words

PERSON_TITLES = words(
    "mr. mrs. ms. miss dr. prof. sir lady lord gen. col. captain mr mrs ms dr prof"
)
CALENDAR = words(
    "january february march april may june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday"
)
# The most frequent surnames of China by number of people, but for those that begin common words (阳光);
# then surnames of 百家姓 that today hardly begin other words.
SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧田董潘袁蔡蒋余于杜叶程魏苏吕丁任沈"
    "姚卢姜崔钟谭陆汪范廖石贾韦夏傅方邹熊白孟秦邱侯江尹薛闫段雷龙史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤康"
    "易乔赖文庞樊殷施洪翟安颜倪牛温季俞章鲁葛伍申尤毕聂柴焦路岳齐梅庄辛管祝左涂谷祁时舒耿牟卜詹关苗凌费纪"
    "靳盛童欧甄项曲游裴席卫查屈鲍霍翁隋甘景薄单包司柏宁柯阮桂闵解强华车冉房边鞠"
    "荀糜臧伏滕蒯骆虞胥桓阚娄步伊乐班褚庾隗竺卞狄戚岑邢储缪喻邰郜闾"
)
DOUBLE_SURNAMES = words(  # of 百家姓, with 太史 and 独孤
    "万俟 司马 上官 欧阳 夏侯 诸葛 闻人 东方 赫连 皇甫 尉迟 公羊 澹台 公冶 宗政 濮阳 淳于 单于 太叔 申屠 公孙 仲孙 轩辕 令狐"
    " 钟离 宇文 长孙 慕容 鲜于 闾丘 司徒 司空 端木 呼延 南宫 百里 东郭 拓跋 太史 独孤"
)

# Past forms of English verbs that are not regular, written down by hand; those that are mostly nouns or
# auxiliary verbs are left out.
IRREGULAR_PASTS = words(
    """beat began bit blew bore bought broke brought built caught chose drew drove ate fed fell felt fought
    found flew forbade forgave gave went grew hid held hit hurt kept knew laid led left lent lost made
    met overcame oversaw overtook paid ran read rode rose sang sank sat saw sent sold shot slew spent spoke
    stole struck succeeded sued swore taught told threw took undertook underwent won withdrew wore wrote
    became"""
)
IRREGULAR_PARTICIPLES = words(
    """beaten bitten blown born borne bought broken brought built caught chosen drawn driven eaten fed felled
    fought found flown forgiven given grown held hidden hit known laid led left lent lost made met
    overcome overseen overtaken overthrown paid read ridden run seen sent set sold shot shown slain spent
    spoken stolen struck sung taken taught thrown told torn undertaken won worn written"""
)


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
NO_PAST_FORMS = words(
    "based indeed hundred limited united related alleged supposed beloved naked sacred"
)
LINKING_VERBS = words(  # what follows them directly is no object: "remained silent"
    "remained seemed appeared stayed looked turned grew felt became went fell stood finished proved"
)
THIRD_PERSON_VERBS = words(  # common verbs between two named things, chosen by hand
    """acquires attends buys chairs conducts contains defeats directs discovers employs founds includes
    invents joins keeps kills leads leaves likes lives loves makes manages marries meets moves owns plays
    produces provides publishes requires runs sells serves speaks studies supports teaches uses visits
    wins works writes"""
)
RELATIVES = words(  # and people by what they are to somebody
    """father mother son daughter brother sister husband wife uncle aunt nephew niece cousin grandfather
    grandmother grandson granddaughter friend partner teacher pupil student colleague neighbor neighbour
    boss clerk assistant secretary successor predecessor founder owner president director manager mayor
    king queen capital daughter-in-law son-in-law stepfather stepmother widow heir fiancé fiancée"""
)
OFFICES = words(  # of one person at a time, also without an article: "was governor of"
    """governor mayor minister chairman chairwoman chair chancellor ambassador bishop archbishop pope abbot abbess
    rector dean provost captain curator director head chief principal headmaster headmistress treasurer secretary
    leader president manager king queen emperor empress duke duchess count earl viceroy prefect commander editor
    conductor coach regent sheriff"""
)
CHINESE_RELATIVES = words(
    """父亲 母亲 爸爸 妈妈 儿子 女儿 长子 次子 哥哥 弟弟 姐姐 妹妹 兄长 丈夫 妻子 夫人 祖父 祖母 爷爷 奶奶 外公 外婆 孙子 孙女 外孙
    外孙女 叔叔 舅舅 姑姑 姨妈 侄子 外甥 表哥 表妹 朋友 好友 同学 同事 邻居 老师 学生 弟子 师父 徒弟 上司 部下 部将 谋士 秘书 助手
    总统 首相 总理 国王 皇帝 市长 省长 校长 院长 董事长 总经理 总裁 创始人 班主任 医生 作者 导演 主角 主教练 队长"""
)
FACILITIES = words(  # after the name of a place
    "大桥 公园 广场 大厦 车站 火车站 机场 码头 大道 水库 隧道 花园 动物园 植物园 水电站 发电站 体育场 游乐园 大坝 运河 港口"
)
CHINESE_CAPITALS = words("首都 省会 首府 都城 县城 国都 发源地 故乡 老家")
MUTUAL_VERBS = words(
    """结婚 离婚 订婚 成亲 成婚 合作 合并 结盟 结拜 会面 见面 会谈 相识 相见 交战 作战 大战 签约 结为 分手 联姻 比赛 对阵 通信"""
)
CREATING_VERBS = words(
    "写 著 执导 导演 编剧 创作 主演 撰写 编写 编著 主编 演唱 作曲 作词 制作 出演 改编"
)
CHINESE_OFFICES = (  # endings
    *("总裁", "经理", "总监", "董事", "董事长", "主席", "书记", "主任", "院长", "校长", "教授"),
    *("局长", "部长", "市长", "省长", "县长", "总统", "总理", "首相", "会长", "秘书长", "主教练"),
    *("教练", "队长", "总编辑", "主编", "社长", "行长", "所长", "馆长", "司令", "议员", "大使"),
    *("委员", "顾问", "教师", "讲师", "研究员", "首席执行官"),
)
CHINESE_VERBS = words(  # of one or two characters, that the segmenter often joins to others
    """斩 杀 娶 嫁 救 生 见 遇 败 降 攻 围 取 破 追 擒 封 写 著 译 演 唱 读 教 打 买 卖 借给 位 住 去 到 死 葬 卒 居
    属 居住 出生 出生于 位于 属于 来自 毕业于 成立于 前往 进入 发现 发明 创立 创办 创建 收购 投资 控股 击败
    任命 就读 出版 导演 主演 编剧 制作 开发 设计 建造 成为 加入 离开 隶属于 隶属 就读于 任教于"""
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
    hall mount new north south zoo garden gardens""",
    "event": """war battle revolution championship cup tournament festival election season day conference
    congress""",
    "concept": """prize prizes medal award project physics chemistry medicine literature mathematics
    biology economics""",
    "work": """film movie novel book album song single series show play opera musical symphony poem
    magazine newspaper painting story tale essay ballad hymn carol""",
    "product": "aircraft car ship engine camera computer software game drug vehicle",
    "method": "algorithm method technique theorem theory process protocol",
    "creature": "species genus dog cat horse bird fish plant tree ghost spirit god",
}
SURNAME_TITLES = words(  # and professions, after a surname
    "老师 医生 大夫 护士 教授 博士 主任 经理 总经理 律师 先生 女士 小姐 太太 师傅 校长 院长 局长 部长 处长 科长 市长 县长 书记 主席 总统 将军 同学 教练 警官 工程师 会计"
)
# Nouns too general to name anything, written down by hand and not taken from a lexicon; the last line adds
# words that were seen as false entities when company reports and encyclopedia articles were read.
GENERIC_NOUNS = words(
    """公司 有限公司 股份公司 股份有限公司 上市公司 跨国公司 保险公司 证券公司 投资公司 人民法院 人民医院 集团 企业 单位 机构 部门 组织 团体 分公司 子公司 母公司 总公司 人 人员 员工 人们 人士 成员 大家 双方 各方
    先生 女士 小姐 情况 方面 问题 事件 事情 事项 项目 内容 方式 方法 过程 结果 成果 影响 作用 时间 期间 时候 时期 年度 年代 地方 地区
    地点 部分 原因 目的 目标 因素 条件 关系 程度 水平 能力 范围 领域 方向 阶段 基础 情形 环境 社会 世界 国家 事物 东西 种类 类型
    特点 特征 特性 性质 状态 状况 形式 形态 结构 系统 数量 数据 信息 资料 消息 意见 建议 措施 政策 制度 规定 标准 要求 需求 行为 行动
    活动 工作 业务 任务 责任 机会 优势 价值 意义 效果 效率 质量 名字 名称 意思 数字 总数 全部 整体 个人 自身 本身 对方 方案 计划
    一般 附近 周围 中间 里面 外面 前面 后面 左右 上述 以下 以上 令人 发展 科技 有关 展望未来 道德 慈善 幸福感 严格遵守 任教于"""
)
# Words that the segmenter's dictionary tags as names by mistake: found by reading the 2,400 words with
# the tag of places, and the most frequent ones with tags of people and proper nouns, in essays
# (SanWen), encyclopedia articles (CMRC 2018, DuIE) and 三国演义.
MISTAGGED_WORDS = words(
    """东南 西南 西北 城市 都市 大都市 大城市 城镇 集镇 古镇 古城 都城 京城 内城 城堡 城垣 郡县 市镇 新市镇 城中村 街区 大街 天桥 大桥 高架桥 塔楼 台门
    港湾 海港 河港 良港 深水港 港口城市 桥头堡 避风塘 河口 河湾 海湾 河谷 河底 湖底 河畔 湖畔 湾畔 海滨 滨海 海滩 江滩 海岛 离岛
    湖泊 大湖 圣湖 冰湖 咸水湖 堰塞湖 池塘 荷塘 河川 江流 内流河 冰河 河水 湖水 江水 井水 泉水 咸水 深水 海洋 大海 大洋 远洋
    深海 浅海 沧海 沙洲 三角洲 礁湖 入海口 入口 井口 山区 半山区 山脉 山川 山水 山峰 高山 大山 山丘 山岭 山崖 山坡 半山坡 下坡
    石坡 山脚 山洞 山沟 山林 密林 山村 山庄 山寨 山城 冰川 黄沙 黑土地 深渊 里弄 庙前 古庙 南半球 北半球 旧大陆 沿海地区
    周边地区 外国 两国 诸国 万国 小国 大国 古国 文明古国 王国 朝廷 朝野 五洲 太阳 太阳黑子 夕阳 上苍 台风 天宫
    上市 上台 上山 下山 登山 上马 下马 立马 入城 渡江 渡河 渡海 下海 回国 归国 回京 回港 建国 开国 复国 治国 爱国 保国 朝贡 开港
    开埠 开春 新春 新建 内建 长跑 长眠 长大 攀岩 扎根 普及 波及 攸关 关联 并联 加盟 中断 铺平 遮阳 美化 赞美 珍藏 馆藏 云集 滨临
    临湖 沿溪 即将来临 哥哥 英雄 匹夫 嘉宾 美眉 雅士 上士 中士 比丘 绵羊 河马 鸭嘴 鸭嘴龙 牡丹 西瓜 莲蓬 象牙 葡萄树 葡萄园
    吉他 芝士 黑瓦 横梁 玄关 三色旗 佛典 日志 契约 中考 长波 越野 治安 福利 恩典 庆典 礼拜 伦理 古典 太极 阴阳 深度 长度 英里 英哩
    远古 青春 长寿 吉利 兴旺 沧桑 沧海桑田 青梅竹马 青山绿水 山山水水 小桥流水 满头大汗 歇斯底里 美丽 美美 美感 美德 神圣 新鲜 保鲜
    乌黑 长尾 长鼻 长脚 长达 远非 莫非 之国 之遥 东西 非营利 法西斯 令人 恩人 大王 家族 崇拜 崇尚 换乘
    通讯 曝光 论文 普通 美味 开放式 全自动 全日制 改编自 鸣叫声 高高的"""
)
# Ordinary words that the segmenter's dictionary tags as names of people, because they begin with a surname:
# found by reading its 1,800 tagged words of two characters, most frequent first.
NO_PEOPLE = words(
    """武功 文明 王朝 陆军 卫星 雷达 武林 胡同 顾问 王爷 王公 白雪 高峰 齐声 文武 石英 高潮 齐全 洪水 顾客 辛勤 胡子
    王府 叶子 安静 谢谢 白领 康复 梅花 范畴 周转 孙子 宁可 凌辱 高明 陈述 马匹 关怀 林立 王子 温泉 陈列 宁静 左翼
    安抚 高僧 许可 朱红 柴禾 杜绝 石狮 童子 祝贺 岳父 史诗 谢恩 白白 凌厉 高三 王八 胡闹 桂花 高悬 马背 乔木 毛巾 马刺
    白布 张开 周密 马夫 陈设 高薪 华丽 石林 白发 林子 林木 杨柳 梅子 安危 查明 胡涂 石柱 杜鹃 张贴 周旋 白云 田园 高耸
    孔雀 王宫 龙王 朱砂 史实 张嘴 张口 田野 熊掌 李子 焦黄 凌空 雷声 钱财 万世 温馨 白银 卢布 殷勤 陈旧 祝福 严正 高昂
    庄园 顾忌 龙宫 高超 胡椒 张罗 徐徐 高雅 高坡 白旗 常青 牛马 时髦 卫冕 施政 熊猫 钟声 胡人 马道 陶醉 汪洋 包银 任凭
    张扬 高喊 周全 毛发 桂鱼 白昼 王侯 施礼 王道 边远 雷霆 张望 许诺 白痴 王妃 岳母 王后 史前 涂抹 马鞭 伏兵 王权 黄牛
    孙女 马鞍 焦耳 洪亮 柏树 鲁莽 盛世 庄客 于今 霍地 石阶 唐诗 冉冉 马刀 周详 田赋 雷雨 庄主 华裔 熊熊 苏醒 凌迟 白玉
    孔庙 朱雀 齐备 马虎 罗盘 白羊 王族 齐放 梁柱 乐章 钟楼 解密 钱粮 甘休 高招 毛驴 苗子 陶冶 易溶 黄蜂 洪峰 步履 文雅
    桂冠 查清 方正 华贵 龙凤 安民 安然 黄麻 屈膝 凌驾 白杨 盛怒 段子 丁香 雷鸣 牟利 杨树 孔径 殷红 史官 高阁 祝寿 叶柄
    宁肯 白鹤 常胜 周折 齐鸣 安逸 马儿 侯爵 黄铜 盛衰 毛竹 严令 卜辞 马屁 何谓 宁死 陈年 梅雨 钟爱 温顺 贺喜 盛夏 白光
    龙虾 何干 白净 班禅 雷同 费尽 易懂 马达 黄羊 宋词 黄泉 萧萧 胡来 牛仔 钱庄 白桦 石洞 白虎 王法 马驹 胡琴 殷实 万幸
    赖皮 童工 左营 龙驹 贺卡 莫测 汪汪 安闲 白皙 游弋 黄旗 王冠 武侠 柴胡 雷射 严冬 胡桃 白米 汤圆 卫戍 曾孙 顾盼 田庄
    杜撰 车驾 牛黄 左旋 谢幕 苗木 武夫 高升 洪福 耿直 林荫 孙儿 盛赞 王储 杨梅 张狂 左掌 华盖 马棚 高攀 曲直 高塔 唐突
    马镫 马甲 安保 白塔 白兔 殷殷 童谣 汤水 易燃 牛群 贺信 胡言 白熊 易怒 高清 陶俑 曾祖 白铜 白搭 高阶 耿耿 白送 甘甜
    常客 鲍鱼 童男 王孙 万全 安营 陈腐 卜卦 谢世 罗致 牛羊 林海 叶脉 齐齐 黄芩 贺礼 苗圃 王座 谷仓 童儿 喻为 萧瑟 莫如
    梅树 万贯 石塔 孔洞 严词 薄礼 余裕 陈词 胡杨 任满 丁烷 顾惜 毛毛 马帮 牛乳 张榜 贺词 左耳 尤物 桂圆 康乐 余晖 韩元
    熊胆 纪纲 田埂 甘霖 余光 陈迹 章鱼 石松 王爵 张量 雷鸟 陈规 萧索 胡蜂 岳丈 温雅 洪钟 叶猴 黄叶 马鹿 马群 白磷 王水
    王母 洪恩 夏收 严霜 石斧 牛毛 游侠 薄冰 康健 卫护 凌云 余弦 薄暮 柏木 温驯 屈尊 甘蓝 司仪 单飞 高堂 牛栏 徐行 康庄
    左倾 包罗 萧然 胥吏 童贞 徐缓 余波 严师 齐奏 祝词 余震 余辉 桂枝 储君 余生 严父 葛藤 石斛 甘雨 杨桃 章草 白藤 戴孝
    余怒 童生 樊笼 雷轰 钟塔 苗裔 桂树 柴米 丁宁 田鸡 温良 左移 姜汤 余韵 乔迁 柴薪 伏旱 任劳 童真 祝辞 隋书 曲尺 高枕
    易损 汤汁 梅园 房契 唐装 贺年 姜汁 叶芽 林农 孔眼 童声 何忍 龙钟 童颜 石羊 牛劲 殷富 薄云 伏法 谷穗 夏令 左迁 林冠
    安枕 施暴 焦枯 白刃 万夫 左转 左顾 左邻 常礼 莫让 贺客 解甲 史称 史载 向海 田宅 高迁 万军 祝您 陈兵 毛领 马桩 马勺
    宁帖 莫逆 莫若 莫道 伏惟 徐图 易错"""
)
TYPES: Mapping[str, str] = {
    word: type for type, listed in _TYPE_WORDS.items() for word in listed.split()
}
