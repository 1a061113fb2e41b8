import type { Kind } from './types';

const kinds: Record<Kind, string> = {
  first: '[CLS]',
  previous: 'before',
  next: 'after',
  itself: 'itself',
  separators: '[SEP]',
  broad: 'even',
  mixed: 'mixed',
};

const en = {
  title: 'Many heads',
  comma: ', ',
  idea: 'One model looks at one sentence in several ways at once. Each head has its own projections, as each kernel of a convolution has its own pattern: one watches the word before, one the end of the sentence, one what “it” means.',
  question: 'Why several narrow heads instead of one wide one?',
  sentence: 'Sentence (English: this model reads nothing else)',
  layer: 'Layer',
  wall: 'Twelve heads of one layer',
  kinds,
  head: (i: number) => `head ${i}`,
  chosen: (layer: number, head: number) => `Layer ${layer}, head ${head}`,
  /** Between two sentences. */
  stop: '. ',
  queries: 'Token that asks',
  keys: 'Token that answers',
  pair: (query: string, key: string, weight: string) => `Between two words the largest weight is ${weight}: “${query}” looks at “${key}”.`,
  counted: 'Layers and heads are counted from 0, as in Python and in recordings.',
  numbers: { entropy: 'entropy (nats)', saturation: 'saturation', distance: 'mean distance', first: 'on [CLS]', separators: 'on [SEP]', previous: 'on the token before', next: 'on the token after', itself: 'on itself' },
  saturated: 'This head is saturated: nearly one-hot, with little gradient left.',
  model: (heads: number, dim: number, width: number) => `MiniLM, a real model: ${heads} heads of width ${dim} make ${width}.`,
  unknown: (words: string) => `The model does not know: ${words}`,
  refusals: {
    UnknownTextError: 'MiniLM does not know most of these words: it reads English.',
    ShapeError: 'This sentence is too long: the picture has room for 64 tokens. Make it shorter.',
    ChoiceError: 'The address asks for something that there is not: layers are 0 to 5, heads 0 to 11, and a sentence has 1 to 400 characters.',
  } as Record<string, string>,
  answer: [
    'A softmax row has one peak or few. One head of full width would have to choose: the word before, or the subject, or the end. Twelve heads of a twelfth of the width cost the same and look at twelve things, and the output projection mixes what they bring.',
    'That many heads rest on [CLS] or [SEP] is no fault: a row must sum to 1, and a head with nothing to say needs a place to put its weight.',
  ],
};

export const words: { en: typeof en; zh: typeof en } = {
  en,
  zh: {
    title: '多头',
    comma: '、',
    idea: '一个模型同时用几种方式看一句话。每个头有自己的投影，就像每个卷积核有自己的模式：有的盯着前一个词，有的盯着句末，有的在找 “it” 指谁。',
    question: '为什么用几个窄的头，而不用一个宽的？',
    sentence: '句子（英文：这个模型只懂英文）',
    layer: '层',
    wall: '一层的十二个头',
    kinds: { first: '[CLS]', previous: '前一个', next: '后一个', itself: '自己', separators: '[SEP]', broad: '平均', mixed: '混合' },
    head: (i) => `头 ${i}`,
    chosen: (layer, head) => `第 ${layer} 层，头 ${head}`,
    stop: '。',
    queries: '提问的词元',
    keys: '回答的词元',
    pair: (query, key, weight) => `词与词之间，最大的权重是 ${weight}：“${query}”看向“${key}”。`,
    counted: '层和头都从 0 数起，与 Python 和记录文件一致。',
    numbers: { entropy: '熵（奈特）', saturation: '饱和度', distance: '平均距离', first: '在 [CLS] 上', separators: '在 [SEP] 上', previous: '在前一个词元上', next: '在后一个词元上', itself: '在自己身上' },
    saturated: '这个头饱和了：接近独热，几乎没有梯度。',
    model: (heads, dim, width) => `MiniLM，真实的模型：${heads} 个宽 ${dim} 的头，共 ${width}。`,
    unknown: (words) => `模型不认识：${words}`,
    refusals: {
      UnknownTextError: '这句话里的词，MiniLM 大多不认识：它只读英文。',
      ShapeError: '这句话太长，画不下：图里最多容得下 64 个词元。请写短一些。',
      ChoiceError: '地址里要的东西并不存在：层是 0 到 5，头是 0 到 11，句子有 1 到 400 个字符。',
    },
    answer: [
      'softmax 的一行只有一个或几个峰。全宽的单个头只能选一样：前一个词，或主语，或句末。十二个各宽十二分之一的头花费相同，却看十二样东西，再由输出投影混合起来。',
      '许多头停在 [CLS] 或 [SEP] 上并不是毛病：每行的和必须是 1，没有话说的头也要有地方放权重。',
    ],
  },
};
