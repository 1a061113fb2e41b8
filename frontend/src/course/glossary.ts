import type { Language } from '$lib/language.svelte';

type Text = Record<Language, string>;

export interface Term {
  id: string;
  name: Text;
  /** One sentence. */
  means: Text;
  /** How it is written in a text, as the source of a regular expression. */
  written: Text;
  /** The lesson that shows it. */
  lesson: string;
}

export interface Group {
  title: Text;
  terms: Term[];
}

const term = (
  id: string,
  lesson: string,
  [en, enWritten, enMeans]: [string, string, string],
  [zh, zhWritten, zhMeans]: [string, string, string],
): Term => ({ id, lesson, name: { en, zh }, written: { en: enWritten, zh: zhWritten }, means: { en: enMeans, zh: zhMeans } });

export const GLOSSARY: Group[] = [
  {
    title: { en: 'Who asks, who answers', zh: '谁在问，谁在答' },
    terms: [
      term('query', 'cues', ['query', 'quer(?:y|ies)', 'What is looked for, as a vector: it is compared with every key.'], ['查询', '查询', '要找的东西，写成一个向量：它和每个键相比较。']),
      term('key', 'cues', ['key', 'keys?', 'What a thing shows of itself to be found by, as a vector.'], ['键', '键', '一样东西用来被找到的特征，写成一个向量。']),
      term('value', 'cues', ['value', 'values?', 'What a thing gives when it is looked at; the output is a weighted average of the values.'], ['值', '(?<![数阈峰均差期望初极最估取平尔]|处的)值(?![得班])', '一样东西被看到时给出的内容；输出就是值的加权平均。']),
      term('pooling', 'cues', ['pooling', 'pool(?:ing|ed)', 'Making one vector of many; attention pools by a weighted average.'], ['汇聚', '汇聚', '把许多向量合成一个；注意力用加权平均来汇聚。']),
      term('self-attention', 'by_hand', ['self-attention', 'self-attention', 'Attention in which queries, keys and values come from the same tokens.'], ['自注意力', '自注意力', '查询、键和值来自同一批词元的注意力。']),
      term('cross-attention', 'translation', ['cross-attention', 'cross-attention', 'Attention in which the queries come from one sequence and the keys and values from another.'], ['交叉注意力', '交叉注意力', '查询来自一个序列、键和值来自另一个序列的注意力。']),
      term('context-vector', 'translation', ['context vector', 'context vectors?', 'The average of the values, weighted for one query: what attention hands on.'], ['上下文向量', '上下文向量', '按一个查询的权重求得的值的平均：注意力交出去的东西。']),
    ],
  },
  {
    title: { en: 'From scores to weights', zh: '从分数到权重' },
    terms: [
      term('score', 'scores', ['score', 'scores?', 'A number that says how well a key answers a query, before softmax.'], ['分数', '分数', '一个数，说明一个键有多符合查询；它还没有经过 softmax。']),
      term('logit', 'scores', ['logit', 'logits?', 'Another word for a score that is about to go into a softmax; only differences between logits count.'], ['未归一化的分数（logit）', 'logit', '即将送进 softmax 的分数的另一个名字；只有分数之差才起作用。']),
      term('dot-product', 'scores', ['dot product', 'dot products?', 'The sum of the products of two vectors, number by number: large when they point the same way.'], ['点积', '点积', '两个向量逐个相乘再求和：方向相同时很大。']),
      term('weight', 'cues', ['weight', 'weights?', 'The share of a key in the answer to one query; the shares of a row sum to 1.'], ['权重', '权重', '一个键在某个查询的答案里所占的份额；一行的份额之和是 1。']),
      term('softmax', 'normalisers', ['softmax', 'softmax', 'Turns scores into shares: the exponential of each, divided by the sum of all.'], ['softmax', 'softmax', '把分数变成份额：各取指数，再除以总和。']),
      term('normalisation', 'normalisers', ['normalisation', 'normalis(?:ation|ers?)', 'The step that turns scores into shares; softmax is one way to do it.'], ['归一化', '(?<!层)归一化', '把分数变成份额的一步；softmax 是其中一种做法。']),
      term('temperature', 'normalisers', ['temperature', 'temperature', 'What scores are divided by before softmax: low makes one key win, high makes all alike.'], ['温度', '温度', 'softmax 之前分数要除以的数：低则一个键独占，高则人人差不多。']),
      term('one-hot', 'saturation', ['one-hot', 'one-hot', 'A row with a single 1 and zeros elsewhere.'], ['独热', '独热', '只有一个 1、其余都是 0 的一行。']),
      term('entropy', 'saturation', ['entropy', 'entropy', 'How widely a row of weights is spread: 0 for one key alone, log m for m keys alike.'], ['熵', '熵', '一行权重分散得有多广：只给一个键是 0，m 个键一样是 log m。']),
      term('saturation', 'saturation', ['saturation', 'saturat(?:ion|ed?)', 'The sum of the squared weights of a row, from 1/m when all are alike to 1 when one takes all; there softmax passes no gradient.'], ['饱和度', '饱和', '一行权重的平方和：人人一样时是 1/m，一个独占时是 1；到了 1，softmax 就不传梯度了。']),
      term('gradient', 'saturation', ['gradient', 'gradients?', 'How much, and in which direction, the result changes with each number: what a model learns from.'], ['梯度', '梯度', '每个数变动时结果变多少、往哪边变：模型就靠它学习。']),
      term('jacobian', 'saturation', ['Jacobian', 'Jacobian', 'The table of how each weight changes with each score.'], ['雅可比矩阵', '雅可比', '每个权重随每个分数怎样变化的一张表。']),
    ],
  },
  {
    title: { en: 'Smoothing', zh: '平滑' },
    terms: [
      term('kernel', 'regression', ['kernel', 'kernels?(?! of a convolution)', 'A function of the distance that says how much a point counts.'], ['核', '(?<!卷积)核(?!心)', '距离的函数，说明一个点算多少。']),
      term('bandwidth', 'regression', ['bandwidth', 'bandwidths?', 'The distance over which a kernel falls off; in the lesson it is 1 / w.'], ['带宽', '带宽', '核在多远的距离上衰减；课里它是 1 / w。']),
      term('leave-one-out', 'regression', ['leave-one-out error', 'leave-one-out error', 'The error when each point is predicted from all the others.'], ['留一误差', '留一误差', '每个点都由其余的点来预测时的误差。']),
    ],
  },
  {
    title: { en: 'Who may see what', zh: '谁能看见什么' },
    terms: [
      term('mask', 'masks', ['mask', 'masks?', 'A table of true and false that says which keys a query may see.'], ['掩码', '掩码', '一张真假表，说明每个查询可以看见哪些键。']),
      term('causal', 'masks', ['causal', 'causal', 'Of a mask: each position sees itself and what came before, never what follows.'], ['因果', '因果', '一种掩码：每个位置只看见自己和前面的，看不见后面的。']),
      term('padding', 'masks', ['padding', 'padding', 'Filler that makes the texts of a batch equally long; it must be masked.'], ['填充', '填充', '把一批文字补成一样长的占位符；必须遮住。']),
    ],
  },
  {
    title: { en: 'Text as numbers', zh: '文字变成数' },
    terms: [
      term('token', 'by_hand', ['token', 'tokens?', 'A word or a piece of a word: what a model reads and writes.'], ['词元', '词元', '一个词或词的一部分：模型读写的单位。']),
      term('embedding', 'block', ['embedding', 'embeddings?', 'The vector that stands for a token before a model has looked at its neighbours.'], ['嵌入', '嵌入', '模型还没看它的邻居之前，代表一个词元的向量。']),
      term('hidden-state', 'relevance', ['hidden state', 'hidden states?', 'The vector of a token, or of a whole text, inside a model.'], ['隐状态', '隐状态', '一个词元或整段文字在模型内部的向量。']),
      term('cls', 'heads', ['[CLS]', '\\[CLS\\]', 'A token that BERT and its relatives put at the start of a text, to collect the whole of it.'], ['[CLS]', '\\[CLS\\]', 'BERT 一类的模型放在文字开头的词元，用来汇总全文。']),
      term('sep', 'heads', ['[SEP]', '\\[SEP\\]', 'A token that marks the end of a text, or the border between two.'], ['[SEP]', '\\[SEP\\]', '标记一段文字结束、或两段文字分界的词元。']),
    ],
  },
  {
    title: { en: 'Inside a model', zh: '模型里面' },
    terms: [
      term('head', 'heads', ['head', 'heads?', 'One of several attentions that work side by side, each with projections of its own.'], ['头', '多头|(?<=[个的])头(?![发脑])', '并排工作的几个注意力之一，各有自己的投影。']),
      term('sink', 'heads', ['attention sink', '(?:attention )?sinks?', 'A token, often the first, on which heads put the weight that they have no use for.'], ['注意力汇', '注意力汇(?!聚)', '一个词元，往往是第一个，头把用不上的权重放在它上面。']),
      term('fully-connected', 'cues', ['fully connected layer', 'fully connected layers?', 'A layer in which every output is a weighted sum of all inputs, with weights that are learned once and then fixed.'], ['全连接层', '全连接层', '每个输出都是所有输入的加权和，权重学好之后就固定不变的层。']),
      term('residual', 'block', ['residual connection', 'residual(?: connection| stream)?s?', 'The input of a layer is added to its output, so that nothing is lost on the way.'], ['残差连接', '残差(?:连接|流)?', '把一层的输入加到它的输出上，这样一路上什么都不会丢。']),
      term('layer-norm', 'block', ['layer normalisation', 'layer normalisation', 'Each vector is shifted and scaled to mean 0 and variance 1, so that numbers stay moderate through many layers.'], ['层归一化', '层归一化', '把每个向量平移缩放到均值 0、方差 1，让数在许多层里都不会太大。']),
      term('feed-forward', 'block', ['feed-forward network', 'feed-forward(?: network)?', 'Two layers applied to each token alone, after attention has mixed the tokens.'], ['前馈网络', '前馈(?:网络)?', '注意力把词元混合之后，对每个词元单独使用的两层网络。']),
    ],
  },
  {
    title: { en: 'Translation', zh: '翻译' },
    terms: [
      term('encoder', 'translation', ['encoder', 'encoders?', 'The part of a model that reads a text and makes a vector of each token.'], ['编码器', '编码器', '模型中读文字的部分，为每个词元得出一个向量。']),
      term('decoder', 'translation', ['decoder', 'decoders?', 'The part of a model that writes a text, token by token.'], ['解码器', '解码器', '模型中写文字的部分，一个词元一个词元地写。']),
      term('rnn', 'why', ['recurrent network', 'recurrent(?: networks?)?', 'A network that reads token by token and keeps one vector as its memory; GRU and LSTM are kinds of it.'], ['循环神经网络', '循环(?:神经)?网络', '逐个词元地读、用一个向量当记忆的网络；GRU 和 LSTM 都是这一类。']),
      term('alignment', 'translation', ['alignment', 'align(?:ments?|s)', 'Which word of a translation comes from which word of the source.'], ['对齐', '对齐', '译文的哪个词来自源句的哪个词。']),
      term('beam-search', 'translation', ['beam search', 'beam search', 'Writing with several candidates at once, of which the likeliest is kept at the end.'], ['束搜索', '束搜索', '同时写几个候选，最后留下概率最大的一个。']),
      term('bleu', 'bottleneck', ['BLEU', 'BLEU', 'The share of word runs that a translation has in common with a reference, from 0 to 100.'], ['BLEU', 'BLEU', '译文与参考译文共有的词串比例，从 0 到 100。']),
      term('perplexity', 'block', ['perplexity', 'perplexity', 'Between how many equally likely tokens a model hesitates on average; lower is better.'], ['困惑度', '困惑度', '模型平均在多少个同样可能的词元之间犹豫；越低越好。']),
    ],
  },
];

export const TERMS: Term[] = GLOSSARY.flatMap((group) => group.terms);
