import { describe, expect, it } from 'vitest';
import { chineseRefusal, namesRange } from './refusal';

describe('the Chinese of a refusal', () => {
  it.each([
    ['w must be from 0.05 to 20, 99.0 came', 'w 应当是 0.05 到 20 之间的数。'],
    ["tokens[0][1] must be a number from -100 to 100, 'a' came", 'tokens[0][1] 应当是 -100 到 100 之间的数。'],
    ['n must be a whole number from 2 to 16, 2.5 came', 'n 应当是 2 到 16 之间的整数。'],
    ['seed must be from 0 to 2147483647, -1 came', 'seed 应当是 0 到 2147483647 之间的数。'],
    ['hidden must be a multiple of 16, 17 came', 'hidden 应当是 16 的倍数。'],
    ["kind must be one of identity, random, heads, 'other, came' came", 'kind 只能是下面几种之一：identity, random, heads。'],
    ['query must be a list of 4, a list of 3 came', 'query 应当是有 4 项的列表。'],
    ['scores must be a list of 2 to 12, a list of 1 came', 'scores 应当是有 2 到 12 项的列表。'],
    ['position must be from 0 to 7, the last token of the text, 9 came', 'position 应当是 0 到 7 之间的数。'],
    ['there is no such recording', '没有这份录制。'],
    ['text must have 1 to 400 characters, 0 came', 'text 应当有 1 到 400 个字符。'],
  ])('%s', (english, chinese) => expect(chineseRefusal(english)).toBe(chinese));

  it.each([
    ['layer must be from 0 to 5, 9 came', true],
    ['n must be a whole number from 2 to 16, 2.5 came', true],
    ['model must be one of bahdanau, none, oracle came', false],
  ])('%s: names a range, %s', (message, range) => expect(namesRange(message)).toBe(range));

  it('leaves other sentences alone', () => {
    expect(chineseRefusal('text must have at most 64 tokens to be drawn, 70 came')).toBe(null);
  });
});
