import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { words: 5 },
    look: 'train',
    en: 'Press “Train both”: two models learn while you go on. A sentence of five words has 19 of the 96 numbers for each word.',
    zh: '按下“训练两个模型”，往下看的时候它们就在学。五个词的句子，96 个数里每个词分到 19 个。',
  },
  {
    state: { words: 29 },
    look: 'memory',
    en: '29 words in the same vector: three numbers for each. With attention every step can look at 2,784 numbers.',
    zh: '29 个词进同一个向量：每个词只有三个数。有了注意力，每一步都能看到 2,784 个数。',
  },
  {
    state: { words: 29, data: 'numbers', trained_words: 60, measure: 'exact_match' },
    look: 'stored-curves',
    en: 'Trained longer, up to 60 words: both fixed vectors get almost nothing right beyond 20 words, Bahdanau’s attention still more than nine of ten at 60.',
    zh: '训练得更久，直到 60 个词：过了 20 个词，两种固定向量几乎全错，Bahdanau 的注意力到 60 个词还有九成以上全对。',
  },
  {
    state: { data: 'numbers', trained_words: 30, measure: 'exact_match' },
    look: 'stored-curves',
    en: 'Trained on at most 30 words, attention fails too, somewhat later. It removes the bottleneck; it does not replace long examples.',
    zh: '只用最长 30 个词的句子训练，注意力稍晚也会失败。它去掉了瓶颈，却代替不了长的例子。',
  },
];
