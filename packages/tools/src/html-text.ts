/** Extracts the readable text of an HTML page in a single pass, without tags, scripts and styles. */

/** Elements without readable content. */
const skippedElements = ["script", "style", "noscript", "template", "svg"];
/** Elements that start a new line. */
const blockElements = /^\/?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|section|article|header|footer|pre|blockquote|title)$/;

/** Returns the readable text of an HTML page. */
export function extractHtmlText(html: string): string {
  // Lowercases ASCII letters only: other letters can change their length, and the indices of both texts must stay
  // equal.
  const lower = html.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
  let text = "";
  for (let position = 0; position < html.length; ) {
    const tagStart = html.indexOf("<", position);
    if (tagStart === -1) {
      text += html.slice(position);
      break;
    }
    text += html.slice(position, tagStart);
    const isComment = html.startsWith("<!--", tagStart);
    const end = isComment ? html.indexOf("-->", tagStart) : html.indexOf(">", tagStart);
    if (end === -1) break;
    const name = /^[^\s/>]*/.exec(lower.slice(tagStart + 1, Math.min(end, tagStart + 20)))?.[0] ?? "";
    const tag = lower[tagStart + 1] === "/" ? lower.slice(tagStart + 1, end).trim() : name;
    if (!isComment && blockElements.test(tag)) text += "\n";
    position = end + (isComment ? 3 : 1);
    if (!skippedElements.includes(name)) continue;
    const close = lower.indexOf(`</${name}`, position);
    if (close === -1) break;
    position = close;
  }
  return decodeEntities(text)
    .split("\n")
    .map((line) => line.replaceAll(/[ \t\r\f\u00A0]+/g, " ").trim())
    .filter((line, index, lines) => line !== "" || (index > 0 && lines[index - 1] !== ""))
    .join("\n")
    .trim();
}

const namedEntities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

function decodeEntities(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,5}));/gi, (entity, decimal, hex, name) => {
    if (typeof name === "string") return namedEntities[name.toLowerCase()] ?? entity;
    const code = typeof decimal === "string" ? Number(decimal) : Number.parseInt(String(hex), 16);
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : "\uFFFD";
  });
}
