/** Formatting of text and numbers for the terminal and for Markdown. */

/** Converts text to one line without terminal control characters, which file names and model output may contain. */
export function toPlainLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are removed here
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, " ").trim();
}

/** Converts text to one line with all Markdown syntax escaped: no links, images or HTML elements. */
export function escapeMarkdown(text: string): string {
  return toPlainLine(text).replace(/[\\`*_[\]<>|&~!#$]/g, (sign) => (sign === "<" ? "&lt;" : `\\${sign}`));
}

/** Truncates text to `maxLength` characters on one line. */
export function truncate(text: string, maxLength: number): string {
  const line = toPlainLine(text);
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1)}…`;
}

/** Formats a number and its noun: `1 file`, `1,204 files`. */
export function formatCount(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Formats a number of bytes. */
export function formatBytes(number: number): string {
  if (number < 1_000) return `${number} B`;
  return number < 1_000_000 ? `${(number / 1_000).toFixed(1)} KB` : `${(number / 1_000_000).toFixed(1)} MB`;
}

/** Formats milliseconds. */
export function formatDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
