/** Formulas of the lesson: how one cell is made, with its numbers, and what a stage computes. */
import { fixed, type Maybe } from '$lib/numbers';
import { now } from '$lib/tex';
import type { ModelShown, State, TokensShown } from './types';
import { ofHead, type Stage } from './stages';

type Row = Maybe[];

/** A number with two digits at most: 2, 0.5, −1.25; −∞ for a score that is hidden. */
export function brief(value: Maybe, digits = 2): string {
  return value == null ? '−∞' : fixed(value, digits).replace(/\.?0+$/, '');
}

const plain = (value: Maybe, digits = 2): string => brief(value, digits).replace('−', '{-}').replace('∞', '\\infty');
const num = (value: Maybe, digits = 2): string => now(plain(value, digits));
const inBrackets = (value: Maybe): string => (value != null && value < 0 ? `(${plain(value)})` : plain(value));

function dot(left: Row, right: Row): string {
  return left.map((a, k) => `${k ? inBrackets(a) : plain(a)}\\cdot ${inBrackets(right[k])}`).join(' + ');
}

const column = (rows: number[][], j: number): number[] => rows.map((row) => row[j]);

/** How the cell (i, j) of a matrix is made; rows and columns that are tokens are counted from 1, as in x_1. */
export function cellTex(id: string, i: number, j: number, shown: TokensShown, state: State): string {
  const [name, number] = id.split('-');
  const h = Number(number ?? 0);
  const width = shown.sizes.head_dim;
  const at = `_{${now(i + 1)},${now(j + 1)}}`;
  switch (name) {
    case 'query':
    case 'key':
    case 'value': {
      const w = state[{ query: 'w_q', key: 'w_k', value: 'w_v' }[name] as 'w_q'];
      return `${name[0]}${at} = x_{${now(i + 1)}} W_{${name[0].toUpperCase()},\\cdot ${now(j + 1)}} = ${dot(state.tokens[i], column(w, j))} = ${num(shown[name][i][j])}`;
    }
    case 'scores': {
      const score = shown.scores[h][i][j];
      if (score === null) return `s^{(${h})}${at} = -\\infty`;
      return `s^{(${h})}${at} = \\frac{q_{${now(i + 1)}} \\cdot k_{${now(j + 1)}}}{\\sqrt{${width}}} = \\frac{${dot(ofHead(shown.query, h, width)[i], ofHead(shown.key, h, width)[j])}}{\\sqrt{${width}}} = ${num(score)}`;
    }
    case 'weights':
      return softmaxTex(`a^{(${h})}${at}`, shown.scores[h][i], j, shown.weights[h][i][j]);
    case 'probabilities':
      return softmaxTex(`p${at}`, shown.logits[i], j, shown.probabilities[i][j]);
    case 'pooled': {
      const values = column(ofHead(shown.value, h, width), j);
      return `h^{(${h})}${at} = ${dot(shown.weights[h][i], values)} = ${num(shown.pooled[h][i][j])}`;
    }
    case 'attention':
      return `o${at} = ${dot(shown.joined[i], column(state.w_o, j))} = ${num(shown.attention[i][j])}`;
    case 'sum_1':
      return `x${at} + o${at} = ${plain(state.tokens[i][j])} + ${inBrackets(shown.attention[i][j])} = ${num(shown.sum_1[i][j])}`;
    case 'sum_2':
      return `x'${at} + f${at} = ${plain(shown.norm_1[i][j])} + ${inBrackets(shown.feed_forward[i][j])} = ${num(shown.sum_2[i][j])}`;
    case 'norm_1':
      return normTex(`x'${at}`, shown.sum_1[i][j], shown.mean_1[i], shown.deviation_1[i], shown.norm_1[i][j]);
    case 'output':
      return normTex(`y${at}`, shown.sum_2[i][j], shown.mean_2[i], shown.deviation_2[i], shown.output[i][j]);
    case 'inner':
      return `g${at} = \\max(0,\\; ${dot(shown.norm_1[i], column(state.w_1, j))}) = ${num(shown.inner[i][j])}`;
    case 'feed_forward':
      return `f${at} = ${dot(shown.inner[i], column(state.w_2, j))} = ${num(shown.feed_forward[i][j])}`;
    case 'logits':
      return `z${at} = y_{${now(i + 1)}} \\cdot x_{${now(j + 1)}} = ${dot(shown.output[i], state.tokens[j])} = ${num(shown.logits[i][j])}`;
    default:
      return '';
  }
}

function softmaxTex(name: string, scores: Row, j: number, share: number): string {
  if (scores[j] === null) return `${name} = ${num(share)}`;
  const terms = scores.filter((score) => score !== null).map((score) => `e^{${plain(score)}}`);
  return `${name} = \\frac{e^{${plain(scores[j])}}}{${terms.join(' + ')}} = ${num(share, 4)}`;
}

function normTex(name: string, value: number, mean: number, deviation: number, norm: number): string {
  return `${name} = \\frac{${plain(value)} - ${inBrackets(mean)}}{${plain(deviation)}} = ${num(norm)}`;
}

/** What a stage computes, for all tokens at once. */
export function stageTex(stage: Stage, shown: TokensShown, causal: boolean): string[] {
  const { head_dim: width } = shown.sizes;
  switch (stage) {
    case 'project': return ['Q = XW_Q,\\qquad K = XW_K,\\qquad V = XW_V'];
    case 'score': return [`S_h = \\frac{Q_h K_h^\\top}{\\sqrt{${now(width)}}}${causal ? ' + M' : ''},\\qquad h = 0, 1`, ...(causal ? ['M_{ij} = 0\\ (j \\le i),\\quad -\\infty\\ (j > i)'] : [])];
    case 'weigh': return ['A_h = \\operatorname{softmax}(S_h)', 'a_{ij} = e^{s_{ij}} \\big/ \\textstyle\\sum_m e^{s_{im}}'];
    case 'pool': return ['H_h = A_h V_h,\\qquad h = 0, 1'];
    case 'join': return ['O = [H_0, H_1]\\, W_O'];
    case 'add_1': return ["X' = \\operatorname{norm}(X + O)", '\\operatorname{norm}(x) = (x - \\bar{x}) \\big/ \\sqrt{\\operatorname{var}(x) + 10^{-5}}'];
    case 'feed': return ["G = \\operatorname{relu}(X' W_1),\\qquad F = G\\, W_2"];
    case 'add_2': return ["Y = \\operatorname{norm}(X' + F)"];
    case 'next': return ['P = \\operatorname{softmax}(Y X^\\top)'];
  }
}

/** The sums of one block of the real model, with the lengths of their vectors, and what it would say next. */
export function modelTex(shown: ModelShown, words: { attention: string; feed: string; norm: string }): string[] {
  const { layer } = shown;
  const length = (name: keyof ModelShown['lengths']): string => num(shown.lengths[name][layer], 1);
  const text = (word: string): string => `\\text{${word}}`;
  return [
    `x' = x + ${text(words.attention)}(${text(words.norm)}(x)),\\qquad |x| = ${length('before')},\\; |x' - x| = ${length('attention')},\\; |x'| = ${length('between')}`,
    `y = x' + ${text(words.feed)}(${text(words.norm)}(x')),\\qquad |y - x'| = ${length('feed_forward')},\\; |y| = ${length('after')}`,
    `p_{${now(layer)}} = \\operatorname{softmax}\\big(E\\;${text(words.norm)}(y)\\big),\\qquad \\max p_{${now(layer)}} = ${num(shown.lens[layer + 1].probabilities[0], 3)}`,
  ];
}
