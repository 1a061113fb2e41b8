/** What is query and what are keys, wherever attention works. */
const en = {
  title: 'One idea, many uses',
  note: 'Each time something is looked for: the query, the dot below. Everything at hand, the keys above, is compared with it, and what fits gets the weight: the lines. These are sketches; the lessons have the numbers.',
  query: 'Query',
  keys: 'Keys',
  kinds: {
    translation: { title: 'Translation', query: 'what is about to be written', keys: 'the words of the source' },
    language: { title: 'Language models', query: 'the word read last', keys: 'all words before it' },
    summaries: { title: 'Summaries', query: 'the next word of the summary', keys: 'the words of a long text' },
    search: { title: 'Search, question answering', query: 'a question', keys: 'the passages of a text' },
    labels: { title: 'Classification, names', query: '[CLS] for a whole text, or the word that gets a label', keys: 'all words of the text' },
    regression: { title: 'Prediction', query: 'a new x', keys: 'the x of known examples' },
    pictures: { title: 'Pictures', query: 'one patch, or a word of a caption', keys: 'the patches of the picture' },
    speech: { title: 'Speech', query: 'the next letter to write', keys: 'slices of the sound' },
  },
};

export const words: { en: typeof en; zh: typeof en } = {
  en,
  zh: {
    title: '一个想法，处处可用',
    note: '每一次都有一个要找的东西：查询，即下方的圆点。手头的一切，即上方的键，都与它比较，合适的得到权重，即连线。这里只是示意，数字在各课里。',
    query: '查询',
    keys: '键',
    kinds: {
      translation: { title: '翻译', query: '正要写出的词', keys: '原文的各个词' },
      language: { title: '语言模型', query: '最后读到的词', keys: '它前面的所有词' },
      summaries: { title: '摘要', query: '摘要的下一个词', keys: '长文的各个词' },
      search: { title: '搜索、问答', query: '一个问题', keys: '文章的各个段落' },
      labels: { title: '分类、实体识别', query: '代表全文的 [CLS]，或要标注的词', keys: '文中的所有词' },
      regression: { title: '预测', query: '一个新的 x', keys: '已知例子的 x' },
      pictures: { title: '图像', query: '一个图块，或说明文字里的一个词', keys: '图像的各个图块' },
      speech: { title: '语音', query: '下一个要写的字', keys: '声音的各个片段' },
    },
  },
};
