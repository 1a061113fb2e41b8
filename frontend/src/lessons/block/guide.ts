import type { GuidedStep } from '$lib/guide';
import type { State } from './types';

/** The steps of a presentation of this lesson. */
export const guide: GuidedStep<State>[] = [
  {
    state: { part: 'tokens', stage: 0, token: 4 },
    look: 'scene',
    en: 'Token 5 times W_Q, W_K and W_V: the same row, three times projected.',
    zh: '词元 5 乘以 W_Q、W_K、W_V：同一行，投影三次。',
  },
  {
    state: { part: 'tokens', stage: 2, token: 4 },
    look: 'scene',
    en: 'Two heads, two opinions: head 0 of token 5 looks most at token 3; head 1 cannot choose between 1, 3 and 5.',
    zh: '两个头，两种看法：词元 5 的头 0 最关注词元 3；头 1 在词元 1、3、5 之间不分高下。',
  },
  {
    state: { part: 'tokens', stage: 5, token: 4 },
    look: 'scene',
    en: 'Nothing is replaced: the output of attention is added to the token, and the sum is normed.',
    zh: '什么也没有被替换：注意力的输出加到词元上，再把和归一化。',
  },
  {
    state: { part: 'tokens', stage: 8, token: 4 },
    look: 'next',
    en: 'After token 5, token 1 is the likeliest. Now change a number of a matrix, and watch this change.',
    zh: '在词元 5 之后，词元 1 最可能出现。现在改动矩阵里的一个数，看看这里怎么变。',
  },
  {
    state: { part: 'model', text: 'She opened the door and looked out of the', position: null, layer: 10 },
    look: 'lens',
    en: 'A real model of 30 blocks. After block 10 it does not know yet what she looked out of.',
    zh: '一个有 30 块的真实模型。在第 10 块之后，它还不知道她从哪里往外看。',
  },
  {
    state: { part: 'model', text: 'She opened the door and looked out of the', position: null, layer: 29 },
    look: 'lens',
    en: 'Only the last two blocks put “window” in the first place.',
    zh: '到最后两块，“window”才排到第一位。',
  },
];
