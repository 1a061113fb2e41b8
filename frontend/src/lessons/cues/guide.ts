import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

export const guide: GuidedStep<State>[] = [
  {
    state: { scene: 'desk', pooling: 'average', query: null, saliency: null },
    look: 'weights',
    en: 'No query and no preference: each of the five things gets a fifth of the light.',
    zh: '没有查询，也没有偏好：五样东西各得五分之一的光。',
  },
  {
    state: { pooling: 'learned' },
    look: 'weights',
    en: 'Let what stands out decide. Nearly all the light, 97%, falls on the red cup.',
    zh: '让显眼的说了算。几乎所有的光，97%，都落在红杯子上。',
  },
  {
    state: { pooling: 'query' },
    look: 'weights',
    en: 'Now look for something to read. The cup keeps less than 1%, the book takes 84%. The objects are the same; only the query is new.',
    zh: '现在想找点东西读。杯子剩下不到 1%，书得到 84%。东西没有变，新的只有查询。',
  },
  {
    state: { pooling: 'query', query: [4, 0, 0, 0] },
    look: 'query-0',
    en: 'The query is four numbers. Ask for redness alone, 4 0 0 0, and the cup wins again.',
    zh: '查询是四个数。只要红色，4 0 0 0，杯子又赢了。',
  },
  {
    state: { scene: 'cats', pooling: 'query', query: null },
    look: 'weights',
    en: 'How many cats? Three keys answer alike, so each gets a third: counting is seeing how far the weight spreads.',
    zh: '有几只猫？三个键答得一样好，于是各得三分之一：看权重分给了几个，就是在数数。',
  },
];
