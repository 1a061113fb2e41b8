import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

const NUMBER =
  'six hundred eighty three billion forty two million two hundred thirty one thousand eighty eight';

export const guide: GuidedStep<State>[] = [
  {
    state: { direction: 'numbers', model: 'bahdanau', text: NUMBER, step: 2, view: 'lines', head: null, row: null, column: null },
    look: 'links',
    en: 'The decoder writes 八, eight, and looks almost only at “eighty”: that is all it needs now.',
    zh: '解码器写出“八”，几乎只看“eighty”：此刻它只需要这个。',
  },
  {
    state: { step: 6 },
    look: 'links',
    en: 'For 亿 it looks at “billion”. Nobody told it which word belongs to which.',
    zh: '写“亿”时，它看“billion”。没有人告诉过它哪个词对应哪个词。',
  },
  {
    state: { step: 8 },
    look: 'links',
    en: 'Chinese counts by ten thousands: from “forty million” come 四 and 千, and for both it looks most at “forty”.',
    zh: '汉语以万为单位：“forty million”变成“四千……万”，写“四”和“千”时，看得最多的都是“forty”。',
  },
  {
    state: { step: 8, view: 'map' },
    look: 'map',
    en: 'All steps at once: a row for each sign that is written. The path runs down to the right, since both languages begin with the largest part.',
    zh: '所有步骤一起看：每写一个字，就是一行。路径向右下走，因为两种语言都从最大的部分说起。',
  },
  {
    state: { model: 'none', step: 4, view: 'lines' },
    look: 'picture',
    en: 'The same text without attention: no lines, one vector for all. And this number it gets wrong.',
    zh: '同一段文字，没有注意力：没有线，整句只有一个向量。这个数它就译错了。',
  },
  {
    state: { direction: 'en-fr', model: 'bahdanau', text: null, step: 3 },
    look: 'links',
    en: 'English to French. For “pris” it looks at “mist”, the first piece of “mistook”. Step on, and guess each look before you see it.',
    zh: '英语译成法语。写“pris”时，它看“mist”，也就是“mistook”的前半。一步步走下去，先猜它看哪里，再看答案。',
  },
];
