/** The stages of the block as matrices: where each stands in the picture, and which numbers make each of its cells. */
import type { Maybe } from '$lib/numbers';
import type { MatrixName, State, TokensShown } from './types';

export const STAGES = ['project', 'score', 'weigh', 'pool', 'join', 'add_1', 'feed', 'add_2', 'next'] as const;
export type Stage = (typeof STAGES)[number];

/** A part of a matrix that takes part in a cell: a row, a column, or with both one cell. */
export interface Lit {
  id: string;
  row?: number;
  column?: number;
}

export interface Panel {
  id: string;
  tex: string;
  rows: Maybe[][];
  /** The field of the state that is edited here. */
  edit?: MatrixName;
  /** Whether rows, columns stand for tokens; otherwise they are unnamed. */
  tokenRows?: boolean;
  tokenColumns?: boolean;
  /** Columns of each head, marked above; `head` if all are of one. */
  heads?: number;
  head?: number;
  /** Shares from 0 to 1, coloured on a scale of their own. */
  shares?: boolean;
  /** What makes a cell; without it the cells are given. */
  madeOf?: (i: number, j: number) => Lit[];
}

/** One column of the picture: a matrix, with the one that it is multiplied by above it, and a sign before it. */
export interface Column {
  sign?: string;
  top?: Panel;
  panel: Panel;
}

export interface Scene {
  /** Groups side by side, each read from left to right. */
  groups: Column[][];
  /** Whether the groups stand one below the other. */
  stacked?: boolean;
  /** The matrix whose cell is explained at first. */
  focus: string;
}

const product = (left: string, top: string) => (i: number, j: number): Lit[] => [{ id: left, row: i }, { id: top, column: j }];
const rowOf = (id: string) => (i: number): Lit[] => [{ id, row: i }];
const sumOf = (a: string, b: string) => (i: number, j: number): Lit[] => [{ id: a, row: i, column: j }, { id: b, row: i, column: j }];

export function transposed<T>(rows: T[][]): T[][] {
  return rows[0].map((_, j) => rows.map((row) => row[j]));
}

/** Columns of one head. */
export function ofHead(rows: number[][], head: number, width: number): number[][] {
  return rows.map((row) => row.slice(head * width, (head + 1) * width));
}

export function sceneOf(stage: Stage, shown: TokensShown, state: State): Scene {
  const { heads, head_dim: width } = shown.sizes;
  const each = Array.from({ length: heads }, (_, h) => h);
  const given = (id: MatrixName, tex: string, more: Partial<Panel> = {}): Panel => ({ id, tex, rows: state[id], edit: id, ...more });
  const rows = (id: string, tex: string, values: Maybe[][], more: Partial<Panel> = {}): Panel => ({ id, tex, rows: values, tokenRows: true, ...more });

  switch (stage) {
    case 'project': {
      const made = ([['query', 'Q', 'w_q'], ['key', 'K', 'w_k'], ['value', 'V', 'w_v']] as const).map(([id, tex, w]) => ({
        top: given(w, `W_${tex}`, { heads }),
        panel: rows(id, `${tex} = XW_${tex}`, shown[id], { heads, madeOf: product('tokens', w) }),
      }));
      return { groups: [[{ panel: given('tokens', 'X', { tokenRows: true }) }, ...made]], focus: 'query' };
    }
    case 'score':
      return {
        groups: each.map((h) => [
          { panel: rows(`query-${h}`, `Q_${h}`, ofHead(shown.query, h, width), { head: h }) },
          {
            top: { id: `key-${h}`, tex: `K_${h}^\\top`, rows: transposed(ofHead(shown.key, h, width)), tokenColumns: true, head: h },
            panel: rows(`scores-${h}`, `S_${h} = Q_${h} K_${h}^\\top / \\sqrt{${width}}`, shown.scores[h], { head: h, madeOf: product(`query-${h}`, `key-${h}`) }),
          },
        ]),
        focus: 'scores-0',
      };
    case 'weigh':
      return {
        groups: each.map((h) => [
          { panel: rows(`scores-${h}`, `S_${h}`, shown.scores[h], { head: h, tokenColumns: true }) },
          { sign: '→', panel: rows(`weights-${h}`, `A_${h} = \\operatorname{softmax}(S_${h})`, shown.weights[h], { head: h, tokenColumns: true, shares: true, madeOf: rowOf(`scores-${h}`) }) },
        ]),
        stacked: true,
        focus: 'weights-0',
      };
    case 'pool':
      return {
        groups: each.map((h) => [
          { panel: rows(`weights-${h}`, `A_${h}`, shown.weights[h], { head: h, shares: true, tokenColumns: true }) },
          {
            top: rows(`value-${h}`, `V_${h}`, ofHead(shown.value, h, width), { head: h }),
            panel: rows(`pooled-${h}`, `H_${h} = A_${h} V_${h}`, shown.pooled[h], { head: h, madeOf: product(`weights-${h}`, `value-${h}`) }),
          },
        ]),
        focus: 'pooled-0',
      };
    case 'join':
      return {
        groups: [[
          { panel: rows('joined', '[H_0, H_1]', shown.joined, { heads }) },
          { top: given('w_o', 'W_O'), panel: rows('attention', 'O = [H_0, H_1]\\, W_O', shown.attention, { madeOf: product('joined', 'w_o') }) },
        ]],
        focus: 'attention',
      };
    case 'add_1':
      return { groups: addition(rows('tokens', 'X', state.tokens, { edit: 'tokens' }), rows('attention', 'O', shown.attention), rows('sum_1', 'X + O', shown.sum_1), rows('norm_1', "X' = \\operatorname{norm}(X + O)", shown.norm_1)), stacked: true, focus: 'sum_1' };
    case 'feed':
      return {
        groups: [[
          { panel: rows('norm_1', "X'", shown.norm_1) },
          { top: given('w_1', 'W_1'), panel: rows('inner', "G = \\operatorname{relu}(X' W_1)", shown.inner, { madeOf: product('norm_1', 'w_1') }) },
          { top: given('w_2', 'W_2'), panel: rows('feed_forward', 'F = GW_2', shown.feed_forward, { madeOf: product('inner', 'w_2') }) },
        ]],
        focus: 'inner',
      };
    case 'add_2':
      return { groups: addition(rows('norm_1', "X'", shown.norm_1), rows('feed_forward', 'F', shown.feed_forward), rows('sum_2', "X' + F", shown.sum_2), rows('output', "Y = \\operatorname{norm}(X' + F)", shown.output)), stacked: true, focus: 'sum_2' };
    case 'next':
      return {
        groups: [[
          { panel: rows('output', 'Y', shown.output) },
          { top: { id: 'vocabulary', tex: 'X^\\top', rows: transposed(state.tokens), tokenColumns: true }, panel: rows('logits', 'Z = YX^\\top', shown.logits, { madeOf: product('output', 'vocabulary') }) },
          { sign: '→', panel: rows('probabilities', 'P = \\operatorname{softmax}(Z)', shown.probabilities, { shares: true, tokenColumns: true, madeOf: rowOf('logits') }) },
        ]],
        focus: 'probabilities',
      };
  }
}

/** A sum in one line, and its norm in the next: four matrices are too wide for one line. */
function addition(a: Panel, b: Panel, sum: Panel, norm: Panel): Column[][] {
  return [
    [{ panel: a }, { sign: '+', panel: b }],
    [{ panel: { ...sum, madeOf: sumOf(a.id, b.id) } }, { sign: '→', panel: { ...norm, madeOf: rowOf(sum.id) } }],
  ];
}

export const panelsOf = (scene: Scene): Panel[] =>
  scene.groups.flat().flatMap(({ top, panel }) => (top ? [top, panel] : [panel]));

/** Size of the largest number of a scene, without shares: the strongest colour of all its matrices. */
export function largest(scene: Scene): number {
  const values = panelsOf(scene).filter(({ shares }) => !shares).flatMap(({ rows }) => rows.flat());
  return Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
}

/** What a stage makes, for a small picture of it; several matrices stand side by side. */
export function madeAt(stage: Stage, shown: TokensShown): { rows: Maybe[][]; shares: boolean } {
  const beside = (parts: Maybe[][][]): Maybe[][] =>
    parts[0].map((_, i) => parts.flatMap((part, k) => (k ? [null, ...part[i]] : part[i])));
  switch (stage) {
    case 'project': return { rows: beside([shown.query, shown.key, shown.value]), shares: false };
    case 'score': return { rows: beside(shown.scores), shares: false };
    case 'weigh': return { rows: beside(shown.weights), shares: true };
    case 'pool': return { rows: beside(shown.pooled), shares: false };
    case 'join': return { rows: shown.attention, shares: false };
    case 'add_1': return { rows: shown.norm_1, shares: false };
    case 'feed': return { rows: shown.feed_forward, shares: false };
    case 'add_2': return { rows: shown.output, shares: false };
    case 'next': return { rows: shown.probabilities, shares: true };
  }
}
