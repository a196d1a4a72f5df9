/** Words and numbers as people read them. */

/** Text on one line, without what a terminal would obey: names of files and words of models may hold anything. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, " ").trim();
}

/** Text on one line of Markdown, of which nothing is read as a sign: no link, no picture, no element of a page. */
export function inMarkdown(text: string): string {
  return plain(text).replace(/[\\`*_[\]<>|&~!#$]/g, (sign) => (sign === "<" ? "&lt;" : `\\${sign}`));
}

/** Text of at most `most` characters, on one line. */
export function short(text: string, most: number): string {
  const line = plain(text);
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

/** A number and its noun: `1 file`, `1,204 files`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Bytes as people read them. */
export function bytes(number: number): string {
  if (number < 1_000) return `${number} B`;
  return number < 1_000_000 ? `${(number / 1_000).toFixed(1)} KB` : `${(number / 1_000_000).toFixed(1)} MB`;
}

/** Milliseconds as people read them. */
export function duration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
