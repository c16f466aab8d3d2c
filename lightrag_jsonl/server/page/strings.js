// All words of the page, in English and Chinese. `{}` stands for a number or a name.

const WORDS = new Map(Object.entries({
  views: ["Views", "视图"],
  ask: ["Ask", "提问"],
  graph: ["Graph", "图谱"],
  documents: ["Documents", "文档"],
  index: ["Index", "索引"],
  language: ["切换到中文", "Switch to English"],
  other_language: ["中文", "EN"],
  theme: ["Dark or light", "深色或浅色"],
  close: ["Close", "关闭"],
  go_on: ["Continue", "继续"],
  token: ["Token", "令牌"],
  token_title: ["This server needs a token", "此服务器需要令牌"],
  token_why: ["It is kept until you close this tab.", "令牌只保留到关闭此标签页为止。"],
  token_wrong: ["The server does not accept this token.", "服务器不接受此令牌。"],
  // Ask
  ask_title: ["Ask your documents", "向文档提问"],
  ask_hint: ["Answers cite their sources: click a number to read the passage.", "回答会注明出处：点击编号即可查看原文。"],
  question: ["Ask a question…", "请输入问题……"],
  stop: ["Stop", "停止"],
  new_conversation: ["New conversation", "新对话"],
  mode: ["Mode", "模式"],
  mode_mix: ["Everything (mix)", "全部（mix）"],
  mode_hybrid: ["Entities and relations (hybrid)", "实体与关系（hybrid）"],
  mode_local: ["Entities (local)", "实体（local）"],
  mode_global: ["Relations (global)", "关系（global）"],
  mode_naive: ["Passages (naive)", "段落（naive）"],
  mode_overview: ["The whole (overview)", "全貌（overview）"],
  mode_bypass: ["Model only (bypass)", "仅模型（bypass）"],
  filters: ["Filters", "筛选"],
  filter_title: ["Title of the document", "文档标题"],
  filter_from: ["Dated from", "日期不早于"],
  filter_to: ["Dated until", "日期不晚于"],
  filter_as_of: ["As of (2021-06)", "截至（如 2021-06）"],
  reading: ["Searching the index…", "正在检索……"],
  ranking: ["Ranking what was found…", "正在排序检索结果……"],
  writing: ["Writing the answer…", "正在撰写回答……"],
  model_is: ["Answers are written by {}.", "回答由 {} 撰写。"],
  no_model: ["No model is set: answers are sentences quoted from the documents.", "未设置模型：回答由文档中的原句组成。"],
  mark_meaning: ["A number with a question mark: no sentence of the source supports the claim before it.", "编号后带问号：来源中没有句子支持它前面的说法。"],
  copy: ["Copy", "复制"],
  copied: ["Copied", "已复制"],
  source: ["Markdown", "查看 Markdown"],
  stopped: ["Stopped.", "已停止。"],
  cut_off: ["The model stopped at its length limit.", "模型达到长度上限，回答不完整。"],
  sources: ["Sources", "来源"],
  evidence: ["Evidence", "依据"],
  evidence_none: ["No relation stands in a cited passage.", "引用的原文中没有关系。"],
  also_found: ["Also found", "另外检索到"],
  trace: ["How this answer came about ↗", "查看回答的生成过程 ↗"],
  passage: ["Passage", "原文"],
  page_of: ["page {}", "第 {} 页"],
  unsupported: ["No sentence here supports this claim.", "原文中没有支持这一说法的句子。"],
  unsupported_claim: ["No sentence here supports this claim: “{}”", "原文中没有支持这一说法的句子：“{}”"],
  show_evidence: ["Show evidence", "查看依据"],
  // Graph
  search_entity: ["Search entities…", "搜索实体……"],
  type: ["Type", "类型"],
  found: ["Found: {}", "找到：{}"],
  all_types: ["All types", "全部类型"],
  choose_entity: ["Choose an entity to see what it is related to.", "选择一个实体，查看与之相关的内容。"],
  clear: ["Clear", "清空"],
  overview: ["Overview", "全貌"],
  communities_hint: ["Groups of entities that belong together, the largest first. Choose one, or an entity in the drawing.", "联系紧密的实体群组，从大到小排列。可选择一组，或在图中选择一个实体。"],
  passages_n: ["Passages: {}", "段落：{}"],
  write_reports: ["Write the missing reports…", "撰写缺少的报告……"],
  write_reports_why: ["Let the model write a report on each larger group? Calls · tokens, about: {}", "让模型为每个较大的群组撰写报告？约需 调用次数 · 词元数：{}"],
  writing_reports: ["Writing reports…", "正在撰写报告……"],
  reports_complete: ["Every larger group has a report.", "每个较大的群组都已有报告。"],
  reports_done: ["Reports written: {}", "已撰写报告：{}"],
  collapse: ["Collapse", "收起"],
  history: ["History", "沿革"],
  history_of: ["History of “{}”", "“{}”的沿革"],
  history_hint: ["What was said over time; statements without a date come last. Choose one to read the passage.", "历来的说法，按时间排列；没有日期的在最后。点击可查看原文。"],
  since: ["since {}", "{} 起"],
  until: ["until {}", "至 {} 止"],
  written: ["says a text of {}", "{} 的文档所述"],
  undated: ["no date", "无日期"],
  conflicts: ["Contradictions", "矛盾"],
  conflicts_hint: ["Statements that cannot both hold. Choose one to read the passage; delete the wrong one, with a reason.", "不能同时成立的说法。点击可查看原文；可删除错误的一条，并注明原因。"],
  conflicts_none: ["No contradictions were found.", "未发现矛盾。"],
  homonyms: ["Namesakes", "同名"],
  homonyms_hint: ["Names that seem to have several bearers, since documents contradict each other. Choose a bearer to read the passages.", "文档的说法互相矛盾，这些名称可能各有不同所指。点击其中一个可查看原文。"],
  homonyms_none: ["No name seems to have several bearers.", "未发现同名异指的名称。"],
  homonym_none: ["Nothing says that “{}” has several bearers.", "未发现“{}”有不同所指。"],
  against_dates: ["Years that contradict each other: {}", "年份互相矛盾：{}"],
  against_types: ["Types that contradict each other: {}", "类型互相矛盾：{}"],
  against_places: ["Organizations or places that differ: {}", "所在机构或地点不同：{}"],
  separate_entity: ["Separate", "拆分"],
  separate_title: ["Tell the bearers of “{}” apart", "区分同名的“{}”"],
  separate_entity_why: ["Each becomes an entity of its own, with the qualifier behind the name; the bare name still finds all of them. This can be undone.", "各自成为单独的实体，名称后加括注；用原名仍能找到它们。拆分可以撤销。"],
  separate_done: ["“{}” is separated.", "已拆分“{}”。"],
  qualifier: ["Qualifier in {}", "括注（{}）"],
  rejoin_entity: ["Rejoin", "取消拆分"],
  rejoin_title: ["Take the qualifier off “{}”", "去掉“{}”的括注"],
  rejoin_entity_why: ["What the texts say of it counts for the bare name again.", "相关内容重新归入不带括注的名称。"],
  rejoin_done: ["“{}” has its bare name again.", "“{}”已恢复原名。"],
  settle_entity: ["Delete this relation", "删除这条关系"],
  settle_title: ["Delete the relation “{}”", "删除关系“{}”"],
  settle_entity_why: ["The relation leaves the graph, for texts added later, too. The deletion can be undone.", "该关系将从图谱中移除，对之后添加的文本同样有效。删除可以撤销。"],
  settle_done: ["“{}” is deleted.", "已删除“{}”。"],
  more_relations: ["Show more relations", "显示更多关系"],
  edit_entity: ["Edit", "编辑"],
  merge_entity: ["Merge", "合并"],
  delete_entity: ["Delete", "删除"],
  edit_title: ["Edit “{}”", "编辑“{}”"],
  merge_title: ["Merge “{}” into another entity", "将“{}”合并到另一个实体"],
  delete_title: ["Delete “{}”", "删除“{}”"],
  edit_entity_why: ["What you write stands in place of what the texts say. The change is kept as a document, and can be undone.", "你填写的内容将取代从文本得出的内容。更改会保存为一篇文档，可以撤销。"],
  merge_entity_why: ["It becomes another name of that entity, for texts added later, too. The merge can be undone.", "它将成为该实体的别名，对之后添加的文本同样有效。合并可以撤销。"],
  delete_entity_why: ["It and its relations leave the graph, for texts added later, too. The deletion can be undone.", "该实体及其关系将从图谱中移除，对之后添加的文本同样有效。删除可以撤销。"],
  edit_done: ["“{}” is changed.", "已更改“{}”。"],
  merge_done: ["“{}” is merged.", "已合并“{}”。"],
  delete_done: ["“{}” is deleted.", "已删除“{}”。"],
  description: ["Description", "描述"],
  merge_into: ["Merge into", "合并到"],
  author: ["Your name", "你的姓名"],
  reason: ["Reason (optional)", "原因（选填）"],
  save: ["Save", "保存"],
  saving: ["Saving…", "正在保存……"],
  undo: ["Undo", "撤销"],
  undone: ["Undone.", "已撤销。"],
  cancel: ["Cancel", "取消"],
  full: ["500 entities are drawn, and no more: clear the drawing to go on.", "已绘制 500 个实体，达到上限；请清空后继续。"],
  aliases: ["Also: {}", "又名：{}"],
  no_webgl: ["This browser cannot draw the graph (WebGL is off). The lists beside it show the same.", "此浏览器无法绘制图谱（WebGL 已关闭），旁边的列表内容相同。"],
  graph_drawing: ["Drawing of the graph; the lists hold the same", "图谱；列表中有相同内容"],
  // Documents
  drop: ["Drop files here, or", "将文件拖到此处，或"],
  choose_files: ["choose files", "选择文件"],
  kinds: ["PDF, Word, PowerPoint, Excel, CSV, HTML, EPUB, Text, Markdown, reStructuredText, Org, LaTeX, Jupyter notebooks, Mail, JSON, XML, Pictures", "PDF、Word、PowerPoint、Excel、CSV、HTML、EPUB、文本、Markdown、reStructuredText、Org、LaTeX、Jupyter 笔记本、邮件、JSON、XML、图片"],
  find_document: ["Search documents…", "搜索文档……"],
  state: ["State", "状态"],
  state_: ["All states", "全部状态"],
  state_done: ["done", "完成"],
  state_partial: ["partial", "部分完成"],
  state_failed: ["failed", "失败"],
  state_pending: ["pending", "待处理"],
  state_waiting: ["waiting", "等待中"],
  state_running: ["running", "进行中"],
  state_cancelled: ["cancelled", "已取消"],
  chunks: ["Chunks: {}", "分块：{}"],
  entities: ["Entities: {}", "实体：{}"],
  relations_n: ["Relations: {}", "关系：{}"],
  documents_n: ["Documents: {}", "文档：{}"],
  no_matches: ["Nothing matches.", "没有匹配项。"],
  delete: ["Delete", "删除"],
  delete_one: ["Delete {}", "删除 {}"],
  delete_why: ["Delete “{}”, and everything that only it states?", "确定删除“{}”，以及只出自该文档的内容？"],
  retry: ["Retry what failed", "重试失败部分"],
  failures: ["Problems: {}", "问题：{}"],
  jobs: ["Jobs", "任务"],
  no_jobs: ["Nothing is under way.", "暂无任务。"],
  unchanged: ["The index holds this text already.", "索引中已有此文本。"],
  job_upload: ["Indexing {}", "索引 {}"],
  job_insert: ["Indexing texts", "索引文本"],
  job_delete: ["Deleting documents", "删除文档"],
  job_retry: ["Retrying", "重试"],
  job_edit: ["Changing the graph", "更改图谱"],
  retry_job: ["Try again", "重试"],
  stage_starting: ["Starting", "正在启动"],
  stage_reading: ["Reading chunks: {}", "读取分块：{}"],
  stage_merging: ["Merging: {}", "合并：{}"],
  stage_summarizing: ["Summarizing: {}", "撰写摘要：{}"],
  stage_embedding: ["Embedding: {}", "计算向量：{}"],
  stage_writing: ["Storing: {}", "保存：{}"],
  model_calls: ["Model calls: {}", "模型调用：{}"],
  tokens: ["Tokens: {}", "词元：{}"],
  cancel_job: ["Cancel", "取消"],
  health: ["Extraction", "抽取情况"],
  ok: ["Read in full: {}", "完整读取：{}"],
  empty: ["Nothing found: {}", "未抽取到内容：{}"],
  partial: ["Read in part: {}", "部分读取：{}"],
  failed: ["Failed: {}", "失败：{}"],
  refused: ["Refused or repaired records", "被拒绝或修复的记录"],
  previous: ["Previous", "上一页"],
  next: ["Next", "下一页"],
  // Errors, by the server's codes
  error_network: ["The server cannot be reached.", "无法连接服务器。"],
  error_busy: ["The server is busy.", "服务器繁忙。"],
  error_not_found: ["Not found.", "未找到。"],
  error_invalid: ["The request cannot be answered.", "请求无法处理。"],
  error_model: ["The language model failed.", "语言模型出错。"],
  error_embedder: ["The embedding model failed.", "嵌入模型出错。"],
  error_locked: ["The index is in use elsewhere.", "索引正被占用。"],
  error_budget: ["A limit of model calls is reached.", "已达到模型调用上限。"],
}));

let language = localStorage.getItem("language") ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

// The words for a key, with a value in their gap; "" for an unknown key.
export function t(key, value = "") {
  return (WORDS.get(key)?.[language === "zh" ? 1 : 0] ?? "").replace("{}", () => value);
}

// What follows a prefix in the keys that begin with it, in the order written above.
export function keysAfter(prefix) {
  return [...WORDS.keys()].filter((key) => key.startsWith(prefix)).map((key) => key.slice(prefix.length));
}

// Words as a list in the language of the page.
export const listed = (words) => words.join(language === "zh" ? "、" : ", ");

export const format = (number) => number.toLocaleString(language === "zh" ? "zh-CN" : "en");

export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem("language", language);
  translate(document.body);
}

// Write the words of every element below that names its words.
export function translate(root) {
  document.documentElement.lang = language;
  for (const node of [root, ...root.querySelectorAll("[data-t], [data-label], [data-hint]")]) {
    const { t: text, n, label, hint } = node.dataset;
    if (text) node.textContent = t(text, n);
    if (hint) node.placeholder = t(hint);
    if (label) {
      node.setAttribute("aria-label", t(label, n));
      if (node.tagName === "BUTTON") node.title = t(label, n);
    }
  }
}
