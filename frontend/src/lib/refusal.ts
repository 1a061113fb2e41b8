/** What the server says of a field that it refuses, in Chinese: `_state.py` writes these sentences in English. */
const NUMBER = '(-?[\\d.]+(?:e[+-]?\\d+)?)';
const SENTENCES: [pattern: string, chinese: string][] = [
  [`(?:a number )?from ${NUMBER} to ${NUMBER}`, '应当是 $1 到 $2 之间的数'],
  [`a whole number from ${NUMBER} to ${NUMBER}`, '应当是 $1 到 $2 之间的整数'],
  [`a multiple of ${NUMBER}`, '应当是 $1 的倍数'],
  ['one of ([^\'"]+)', '只能是下面几种之一：$1'],
  ['true or false', '只能是 true（真）或 false（假）'],
  ['a list of two', '应当是两个值的列表'],
  ['a list of (\\d+)', '应当是有 $1 项的列表'],
  [`a list of ${NUMBER} to ${NUMBER}`, '应当是有 $1 到 $2 项的列表'],
];
const COUNTED: [pattern: string, chinese: string][] = [[`${NUMBER} to ${NUMBER} characters`, '应当有 $1 到 $2 个字符']];

/** Sentences about no field. */
const WHOLE: Record<string, string> = {
  'there is no such recording': '没有这份录制。',
  'this failed inside regard; the terminal says how': 'regard 内部出错了，详情见终端。',
};

/** Whether a sentence names the range of a number, which says more than any text about all fields of a lesson. */
export const namesRange = (message: string): boolean => / must be (?:a (?:whole )?number )?from /.test(message);

/** The refusal in Chinese with the range that would be right, or null for a sentence of another kind. */
export function chineseRefusal(message: string): string | null {
  if (message in WHOLE) return WHOLE[message];
  for (const [verb, sentences] of [['be', SENTENCES], ['have', COUNTED]] as const) {
    for (const [pattern, chinese] of sentences) {
      const found = message.match(new RegExp(`^([\\w.[\\]]+) must ${verb} ${pattern}, (?:.*) came$`, 's'));
      if (found) return `${found[1]} ${chinese.replace(/\$(\d)/g, (_, i: string) => found[Number(i) + 1])}。`;
    }
  }
  return null;
}
