import { describe, expect, it } from 'vitest';
import { parsePlace, readFields, writeFields, writePlace } from './address';

const DEFAULTS = {
  w: 1,
  kernel: 'gaussian',
  scaled: true,
  query: null as number[] | null,
  points: [1, 2],
  tokens: [
    [1, 0],
    [0, 1],
  ],
  questions: ['why?'],
};

describe('a state in the address', () => {
  it('omits fields that equal the defaults', () => {
    expect(writeFields(structuredClone(DEFAULTS), DEFAULTS)).toBe('');
  });

  it('survives a round trip', () => {
    const state = {
      w: -2.5,
      kernel: 'a&b=c;d ü 中+',
      scaled: false,
      query: [1, 2],
      points: [0.1],
      tokens: [[1.5, -1], [0, 1e-7], [3, 4]],
      questions: ['<b>"?', '为什么'],
    };
    expect(readFields(writeFields(state, DEFAULTS), DEFAULTS)).toEqual(state);
  });

  it('is readable', () => {
    const state = { ...DEFAULTS, w: 2, tokens: [[1, 2], [3, 4]] };
    expect(writeFields(state, DEFAULTS)).toBe('w=2&tokens=1,2;3,4');
  });

  it.each(['w=', 'w=x', 'w=Infinity', 'tokens=1,x', 'query=[1', 'scaled=yes', 'nothing=1', 'w', '%=%', '__proto__=1'])(
    'takes the default where %s makes no sense',
    (query) => expect(readFields(query, DEFAULTS)).toEqual(DEFAULTS),
  );

  it('does not change the defaults', () => {
    readFields('points=9', DEFAULTS).points.push(1);
    expect(DEFAULTS.points).toEqual([1, 2]);
  });
});

describe('a path with a query', () => {
  it.each([
    ['', [], ''],
    ['#/', [], ''],
    ['#/regression?w=2', ['regression'], 'w=2'],
    ['#/view/a%20b?x=1?', ['view', 'a b'], 'x=1?'],
  ])('%s', (hash, path, query) => expect(parsePlace(hash)).toEqual({ path, query }));

  it('survives a round trip', () => {
    expect(parsePlace(writePlace(['view', 'run 1/2?'], 'x=1'))).toEqual({ path: ['view', 'run 1/2?'], query: 'x=1' });
  });
});
