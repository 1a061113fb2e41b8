import type { Preset } from './types';

const presets: Record<Preset, string> = {
  'en-short': 'Yao Ming, five segments',
  'zh-short': '姚明，五段',
  'en-whole': 'the whole passage',
  'zh-whole': '全文',
};

const en = {
  title: 'Relevance of a text',
  idea: 'Cut a passage into segments; each has a hidden state that serves as key and value. A question is a query, a row of Q. How much does each segment matter to it? The width of the line says so.',
  question: 'Two questions are two rows of Q. What, then, is a head?',
  presets,
  preset: 'Texts',
  passage: 'Passage',
  passageNote: 'one segment a sentence, or where you put |',
  questions: 'Questions, one a line',
  temperature: 'Temperature',
  links: 'From questions to segments',
  linksNote: 'the wider the line, the more the segment matters; point at a question to see only its lines',
  /** Separator between two sentences. */
  space: ' ',
  encoder: (name: string) => `Hidden states by: ${name}`,
  unknown: (text: string, words: string) => `Not known to the encoder, in “${text}”: ${words}`,
  won: (segment: string, weight: string) => `First: “${segment}”, ${weight}.`,
  right: 'That is the answer.',
  second: (rank: number, answer: string) => `The answer, “${answer}”, comes in place ${rank}.`,
  beaten: (tempting: string, rank: number) => `“${tempting}” only sounds like an answer; it comes in place ${rank}.`,
  fooled: (tempting: string) => `It was fooled: “${tempting}” sounds like an answer and comes before it.`,
  among: 'The segments ask each other',
  amongNote: 'self-attention; none sees itself',
  pairs: (one: string, two: string) =>
    `“Bad at math” and “skips class” attend to each other with ${one}, “skips class” and “loves apples” with ${two}.`,
  heads: 'Rows and heads are two things',
  headsNote:
    'Each table holds the same rows of Q, read by another pair of projections. A head that looks only along words of the body and one that looks along words of school answer the same questions differently.',
  head: (name: string, words: string) => `${name}: ${words}`,
  segment: (i: number) => String(i),
  questionNumber: (i: number) => `question ${i}`,
  answer: [
    'A question is another row of Q: the same projections, another query. A head is another pair of projections, W_Q and W_K: the same rows, read in another way. Four questions and two heads are two tables of four rows.',
    'So adding a question costs a row. Adding a head costs parameters, and makes every row be read once more.',
  ],
};

export const words: { en: typeof en; zh: typeof en } = {
  en,
  zh: {
    title: '文本的相关性',
    idea: '把一段话切成几段，每段有一个隐状态，既是键也是值。一个问题就是一个查询，Q 的一行。每一段对它有多要紧？线有多粗，就有多要紧。',
    question: '两个问题是 Q 的两行。那么什么是头？',
    presets,
    preset: '文本',
    passage: '段落',
    passageNote: '每句一段，或在 | 处分开',
    questions: '问题，每行一个',
    temperature: '温度',
    links: '从问题到各段',
    linksNote: '线越粗，这一段越要紧；指向一个问题，只看它的线',
    space: '',
    encoder: (name) => `隐状态来自：${name.replace(' (', '（').replace(')', '）').replace(', ', '，').replace('mean of the tokens', '词元的平均')}`,
    unknown: (text, words) => `“${text}”中编码器不认识：${words}`,
    won: (segment, weight) => `第一是“${segment}”，${weight}。`,
    right: '这就是答案。',
    second: (rank, answer) => `答案“${answer}”排在第 ${rank}。`,
    beaten: (tempting, rank) => `“${tempting}”只是听起来像答案，排在第 ${rank}。`,
    fooled: (tempting) => `它上当了：“${tempting}”听起来像答案，排在了前面。`,
    among: '各段互相提问',
    amongNote: '自注意力，谁也不看自己',
    pairs: (one, two) => `“数学成绩并不好”与“经常旷课”互相关注 ${one}，“经常旷课”与“爱吃苹果”只有 ${two}。`,
    heads: '行与头是两回事',
    headsNote: '每张表都是 Q 的同样几行，由另一对投影来读。只沿身体的词看的头，和只沿学校的词看的头，对同样的问题回答不同。',
    head: (name, words) => `${name}：${words}`,
    segment: (i) => String(i),
    questionNumber: (i) => `问题 ${i}`,
    answer: [
      '问题是 Q 的另一行：同样的投影，另一个查询。头是另一对投影 W_Q 和 W_K：同样的行，换一种读法。四个问题和两个头，就是两张四行的表。',
      '所以多一个问题只多一行；多一个头要多一组参数，每一行都要再读一遍。',
    ],
  },
};
