/** The text of a page of HTML, in one pass: what a person would read, without tags, scripts and styles. */

/** Elements whose content is no text to read. */
const silent = ["script", "style", "noscript", "template", "svg"];
/** Elements that begin a line. */
const blocks = /^\/?(?:p|div|br|li|ul|ol|tr|table|h[1-6]|section|article|header|footer|pre|blockquote|title)$/;

/** What stands on a page. */
export function htmlText(html: string): string {
  // Letters of tags only: others can change their length, and places in the two texts would no longer be the same.
  const lower = html.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
  let text = "";
  for (let at = 0; at < html.length; ) {
    const open = html.indexOf("<", at);
    if (open === -1) {
      text += html.slice(at);
      break;
    }
    text += html.slice(at, open);
    const isComment = html.startsWith("<!--", open);
    const end = isComment ? html.indexOf("-->", open) : html.indexOf(">", open);
    if (end === -1) break;
    const name = /^[^\s/>]*/.exec(lower.slice(open + 1, Math.min(end, open + 20)))?.[0] ?? "";
    const bare = lower[open + 1] === "/" ? lower.slice(open + 1, end).trim() : name;
    if (!isComment && blocks.test(bare)) text += "\n";
    at = end + (isComment ? 3 : 1);
    if (!silent.includes(name)) continue;
    const close = lower.indexOf(`</${name}`, at);
    if (close === -1) break;
    at = close;
  }
  return decoded(text)
    .split("\n")
    .map((line) => line.replaceAll(/[ \t\r\f\u00A0]+/g, " ").trim())
    .filter((line, index, all) => line !== "" || (index > 0 && all[index - 1] !== ""))
    .join("\n")
    .trim();
}

const named: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };

function decoded(text: string): string {
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,5}));/gi, (whole, decimal, hex, name) => {
    if (typeof name === "string") return named[name.toLowerCase()] ?? whole;
    const code = typeof decimal === "string" ? Number(decimal) : Number.parseInt(String(hex), 16);
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : "\uFFFD";
  });
}
