/** Text in diagrams: measuring, truncating and escaping. */

/** Width of the widest supported monospaced font, relative to the font size. */
const columnWidth = 0.62;

/** Returns the width of a text in a monospaced font. */
export function measureWidth(text: string, size: number): number {
  return Math.ceil([...text].reduce((sum, character) => sum + countColumns(character), 0) * columnWidth * size);
}

/** Returns text as a single line of at most `columns` columns; truncated text ends with an ellipsis. */
export function truncateText(text: string, columns: number): string {
  const characters = [...text.replaceAll(/\s+/g, " ").trim()];
  const total = characters.reduce((sum, sign) => sum + countColumns(sign), 0);
  if (total <= columns) return characters.join("");
  let usedColumns = 0;
  const visible = characters.filter((sign) => {
    usedColumns += countColumns(sign);
    return usedColumns < columns;
  });
  return `${visible.join("").trimEnd()}…`;
}

/**
 * Escapes text for an element or an attribute. Characters invalid in XML, and bidirectional controls, are replaced.
 */
export function escapeXml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]|[\u202A-\u202E\u2066-\u2069]/gu, "\uFFFD")
    .replaceAll(/[&<>"'\t\n\r]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** East Asian characters and pictographs take two columns; combining marks none. */
function countColumns(character: string): number {
  if (/\p{Mark}/u.test(character)) return 0;
  return /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Extended_Pictographic}/u.test(
    character,
  )
    ? 2
    : 1;
}
