/** Text in pictures: how wide it is, how it is cut, and how it is kept from being read as anything but text. */

/** The width of the widest of the monospaced fonts in use, as a share of their size. */
const columnWidth = 0.62;

/** The width of a text in a monospaced font. */
export function widthOf(text: string, size: number): number {
  return Math.ceil([...text].reduce((sum, sign) => sum + columnsOf(sign), 0) * columnWidth * size);
}

/** A text in one line that takes at most so many columns; what is cut off is told by three dots. */
export function clipped(text: string, columns: number): string {
  const signs = [...text.replaceAll(/\s+/g, " ").trim()];
  const total = signs.reduce((sum, sign) => sum + columnsOf(sign), 0);
  if (total <= columns) return signs.join("");
  let taken = 0;
  const kept = signs.filter((sign) => {
    taken += columnsOf(sign);
    return taken < columns;
  });
  return `${kept.join("").trimEnd()}…`;
}

/** A text as the content of an element or an attribute. Signs that XML does not have, and those that turn text around, are replaced. */
export function escapeXml(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]|[\u202A-\u202E\u2066-\u2069]/gu, "\uFFFD")
    .replaceAll(/[&<>"'\t\n\r]/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Signs of East Asian scripts and pictographs are wider than a column. */
function columnsOf(sign: string): number {
  if (/\p{Mark}/u.test(sign)) return 0;
  return /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Extended_Pictographic}/u.test(
    sign,
  )
    ? 2
    : 1;
}
