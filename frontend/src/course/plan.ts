import type { Language } from '$lib/language.svelte';

type Text = Record<Language, string>;

/** What the start page says of a lesson, and how the lesson leads to the next one. */
export interface Plan {
  /** Minutes that the lesson takes with its guide, an estimate. */
  minutes: number;
  /** The question that the lesson answers. */
  asks: Text;
  /** What the lesson has shown, and what the next one needs of it. */
  thread: Text;
}

export const PLAN: Record<string, Plan> = {
  why: {
    minutes: 6,
    asks: { en: 'What is lost when a sentence has to fit into one vector?', zh: '一句话要塞进一个向量时，会丢掉什么？' },
    thread: {
      en: 'One vector forgets; looking back does not. But looking where? The next lesson puts five things on a desk and asks what decides which of them is seen.',
      zh: '一个向量会忘，回头看就不会。可是该往哪里看？下一课在桌上放五样东西，问是什么决定了看到哪一样。',
    },
  },
  cues: {
    minutes: 5,
    asks: { en: 'What are query, key and value?', zh: '查询、键和值是什么？' },
    thread: {
      en: 'A query scores keys, scores become weights, weights mix values. The next lesson is the oldest machine that works this way, and all of it fits into one plot.',
      zh: '查询给键打分，分数变成权重，权重混合值。下一课是这样工作的最古老的机器，一张图就能画完。',
    },
  },
  regression: {
    minutes: 8,
    asks: { en: 'Can an average with weights predict? And who chooses how near is near?', zh: '加权平均能预测吗？多近才算近，由谁来定？' },
    thread: {
      en: 'You have met a picture with one row for each query and one column for each key. All later lessons are read in it, so the next one teaches to read it.',
      zh: '你见过这样的图了：每个查询一行，每个键一列。后面的课都要读它，所以下一课就教怎么读。',
    },
  },
  heatmaps: {
    minutes: 4,
    asks: { en: 'How do you read a picture of attention weights?', zh: '注意力权重的图怎么读？' },
    thread: {
      en: 'So far nearness was the only score. There are others, and the rows of a heatmap look different under each of them.',
      zh: '到目前为止，打分只看远近。还有别的打分方式，每一种都会让热图的行变个样子。',
    },
  },
  scores: {
    minutes: 6,
    asks: { en: 'How well does a key answer a query?', zh: '一个键有多符合查询？' },
    thread: {
      en: 'The dot product won, because one matrix product scores everything. It has one fault: it grows with the length of the vectors. The next lesson measures what that does.',
      zh: '点积胜出了：一次矩阵乘法就给一切打好了分。它有一个毛病：向量越长，分数越大。下一课就来量一量后果。',
    },
  },
  saturation: {
    minutes: 5,
    asks: { en: 'Why is the dot product divided by √d?', zh: '点积为什么要除以 √d？' },
    thread: {
      en: 'Now every part of softmax(QKᵀ/√d)V has its reason. The next lesson computes it with five tokens, so small that you can check each number on paper.',
      zh: 'softmax(QKᵀ/√d)V 的每一部分现在都有了理由。下一课用五个词元把它算一遍，小到每个数都能在纸上验算。',
    },
  },
  by_hand: {
    minutes: 8,
    asks: { en: 'What are all the numbers of self-attention?', zh: '自注意力里的每个数是怎么来的？' },
    thread: {
      en: 'Here every token saw every token. A model that writes must not see the word that it is about to write: the next lesson hides cells of the matrix.',
      zh: '这里每个词元都看得见所有词元。可是写作的模型不能看见它正要写的词：下一课把矩阵的一些格子遮住。',
    },
  },
  masks: {
    minutes: 6,
    asks: { en: 'Who may see what, and what happens to a query that sees nothing?', zh: '谁可以看见什么？什么也看不见的查询会怎样？' },
    thread: {
      en: 'One matrix of weights, masked or not, answers one question at a time. A real model asks twelve at once: the next lesson opens its heads.',
      zh: '一个权重矩阵，遮不遮住，一次都只能回答一个问题。真实的模型一次问十二个：下一课打开它的头来看。',
    },
  },
  heads: {
    minutes: 7,
    asks: { en: 'What do the heads of a real model look at?', zh: '真实模型的头在看什么？' },
    thread: {
      en: 'Heads relate tokens. The same sum relates whole sentences, and then it answers questions about a text: that is the next lesson.',
      zh: '头把词元联系起来。同样的算法也能把整句话联系起来，于是能回答关于一段文字的问题：这就是下一课。',
    },
  },
  relevance: {
    minutes: 6,
    asks: { en: 'Which sentence of a text answers my question?', zh: '一段文字里，哪一句回答了我的问题？' },
    thread: {
      en: 'You turned the temperature: the same scores, softer or sharper. The next lesson asks what else may stand where softmax stands, and what it costs to look at one thing only.',
      zh: '你调过温度：同样的分数，可以更软，也可以更尖。下一课要问：softmax 的位置上还能放什么？只看一样东西又要付出什么？',
    },
  },
  normalisers: {
    minutes: 7,
    asks: { en: 'Must everything get a share? And can a hard choice be learned?', zh: '一定要人人有份吗？硬性的选择学得会吗？' },
    thread: {
      en: 'Queries, scores, masks, heads, normalisers: all parts are on the table. The next lesson puts them together to a block, of which models are stacked.',
      zh: '查询、打分、掩码、头、归一化：零件都齐了。下一课把它们拼成一个块，模型就是由这样的块一层层叠起来的。',
    },
  },
  block: {
    minutes: 10,
    asks: { en: 'How do the parts become a Transformer that predicts the next token?', zh: '这些零件怎样组成一个会预测下一个词元的 Transformer？' },
    thread: {
      en: 'Within a text, queries and keys came from the same tokens. In the next lesson the queries come from a translation that is being written, the keys from the sentence that is read.',
      zh: '在一段文字里，查询和键来自同样的词元。到了下一课，查询来自正在写的译文，键来自正在读的句子。',
    },
  },
  translation: {
    minutes: 8,
    asks: { en: 'What does a translator look at while it writes each word?', zh: '翻译每写一个词时，在看什么？' },
    thread: {
      en: 'You saw a decoder that looks back, and one that cannot. The last lesson trains both before your eyes, and measures how much the difference is worth.',
      zh: '你见过能回头看的解码器，也见过不能的。最后一课当着你的面把两者都训练出来，量一量差别有多大。',
    },
  },
  bottleneck: {
    minutes: 9,
    asks: { en: 'How much does attention gain, and from which length on?', zh: '注意力到底带来多少好处？句子多长时开始见效？' },
    thread: {
      en: 'That was the whole course: from one vector that forgets to a model that looks back. Now look into a real model with a text of your own: the viewer shows every head.',
      zh: '课程到此结束：从一个会忘记的向量，到一个会回头看的模型。现在用你自己的文字去看一个真实的模型吧：查看器能显示每一个头。',
    },
  },
};

/** What readers of d2l's chapter on attention know, and where it continues here. */
export const READ: { about: Text; name: string }[] = [
  { about: { en: 'Attention cues', zh: '注意力提示' }, name: 'cues' },
  { about: { en: 'Nadaraya-Watson kernel regression', zh: 'Nadaraya-Watson 核回归' }, name: 'regression' },
  { about: { en: 'Heatmaps with show_heatmaps', zh: 'show_heatmaps 热图' }, name: 'heatmaps' },
  { about: { en: 'Additive attention, scaled dot-product attention', zh: '加性注意力、缩放点积注意力' }, name: 'scores' },
  { about: { en: 'Large dot products, saturated softmax', zh: '点积过大，softmax 饱和' }, name: 'saturation' },
  { about: { en: 'Attention written by hand', zh: '手写注意力' }, name: 'by_hand' },
  { about: { en: 'Masked softmax', zh: '掩蔽 softmax 操作' }, name: 'masks' },
  { about: { en: 'Multi-head attention', zh: '多头注意力' }, name: 'heads' },
  { about: { en: 'Bahdanau attention', zh: 'Bahdanau 注意力' }, name: 'translation' },
  { about: { en: 'The Transformer', zh: 'Transformer' }, name: 'block' },
];
