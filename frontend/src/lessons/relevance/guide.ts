import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { temperature: 0.1 },
    look: 'links',
    en: 'A question is a query, each segment a key. Why is he so tall? The widest line leads to his father’s height.',
    zh: '问题是查询，每一段是一个键。为什么这么高？最粗的线通向他爸的身高。',
  },
  {
    state: { temperature: 0.02 },
    look: 'links',
    en: 'Cold, 0.02: one segment takes everything. The order is the same as before; only the spread has changed.',
    zh: '温度低到 0.02：一段拿走全部。名次和刚才一样，变的只是分散程度。',
  },
  {
    state: { temperature: 2 },
    look: 'links',
    en: 'Hot, 2: all segments count nearly alike, and the lines say little.',
    zh: '温度高到 2：各段差不多一样要紧，线也就说明不了什么。',
  },
  {
    state: { temperature: 0.1 },
    look: 'among',
    en: 'Now the segments ask each other. “Bad at math” and “skips class” attend to each other with about 0.7.',
    zh: '现在各段互相提问。“数学成绩并不好”与“经常旷课”互相关注，约 0.7。',
  },
  {
    state: { temperature: 0.1 },
    look: 'head-0',
    en: 'Rows and heads are two things: the same two questions, read by another pair of projections.',
    zh: '行与头是两回事：同样的两个问题，换一对投影来读。',
  },
];
