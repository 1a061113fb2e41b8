/** The comments in the Python code of the lessons, in Chinese: the server writes them in English. */
const CHINESE: Record<string, string> = {
  'features, and the colours that are seen': '特征，和看到的颜色',
  'a query that asks for nothing': '什么也不问的查询',
  'what stands out': '什么显眼',
  'learned before': '已经学好的',
  'each point is predicted from all the others': '每个点都由其余的点来预测',
  '(1, heads, tokens, tokens)': '（1，头，词元，词元）',
  'a row for each question': '每个问题一行',
  'the scores are given': '分数已经给定',
  'a row of W for each draw': '每次抽样，W 的一行',
  words: '词数',
  'one colour scale for all': '所有图共用一个色标',
  'a colour scale for each': '每张图各用一个色标',
  'the same for every question': '每个问题都一样',
  'one for each question': '每个问题一个',
  'of the question that is asked': '正在问的那个问题的',
  'a linear layer computes x @ weight.mT': '线性层计算 x @ weight.mT',
  '(tokens, width) -> (heads, tokens, width / heads)': '（词元，宽度）->（头，词元，宽度 / 头数）',
  'the heads side by side': '各头并排',
  'of the next token': '下一个词元的',
  '(heads, tokens)': '（头，词元）',
  'if the model ended here': '如果模型到此为止',
  'the same with matplotlib alone': '只用 matplotlib 画同样的图',
};

/** Python code with its comments in Chinese; a comment without a translation stays. */
export function withChineseComments(code: string): string {
  return code.replace(/# (.*)$/gm, (all, text: string) => (text in CHINESE ? `# ${CHINESE[text]}` : all));
}
