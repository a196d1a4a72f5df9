/** JSON that is still being written: what is whole of it, and what of a text is there. Each character is looked at once. */

/** A JSON text that grows. */
export interface GrowingJson {
  /** Take the next characters; tells whether there is more to read than before. */
  readonly add: (characters: string) => boolean;
  /**
   * What there is: undefined when nothing of an object or a list is there, or when it is no JSON. A text is there as far as it
   * has come; what may still change (a number, a word, a key) is not. Readings are frozen, and share what is whole.
   */
  readonly read: () => unknown;
  /** How many members a reading copies now: those of all objects and lists that are open. */
  readonly copied: () => number;
}

type Holder = unknown[] | Record<string, unknown>;

/** An object or a list that is open, and the key of the value that comes. */
interface Open {
  readonly holder: Holder;
  key: string;
  members: number;
}

/** What may come next, beside spaces. */
type Next = "start" | "value" | "first item" | "key" | "first key" | "colon" | "comma" | "nothing";

/** A text that is open. */
interface OpenText {
  readonly isKey: boolean;
  said: string;
  /** An escape that is not whole yet. */
  escape: string;
}

const nothing: unique symbol = Symbol("nothing");

/** What may stand before JSON, and what may still become that. */
const fence = /^(?:`{3}(?:json)?\s*\n)?$/;
const fenceToBe = /^(?:`{0,3}|`{3}(?:js?|jso|json)?\s*)$/;

/** What is nested deeper cannot be saved either. */
const deepest = 500;

/** A JSON text, from its first character on. Models put JSON between fences where nobody keeps them from it. */
export function growingJson(): GrowingJson {
  const open: Open[] = [];
  let next: Next = "start";
  let lead = "";
  let word = "";
  let text: OpenText | undefined;
  let whole: unknown;
  let isBroken = false;
  let isMore = false;
  let copied = 0;

  const refuse = (): void => {
    isBroken = true;
    next = "nothing";
  };

  const put = (value: unknown): void => {
    const around = open.at(-1);
    if (around === undefined) whole = value;
    else {
      putInto(around, value);
      around.members += 1;
      copied += 1;
    }
    next = around === undefined ? "nothing" : "comma";
  };

  const begin = (holder: Holder): void => {
    if (open.length === deepest) {
      refuse();
      return;
    }
    open.push({ holder, key: "", members: 0 });
    next = Array.isArray(holder) ? "first item" : "first key";
    isMore = true;
  };

  const end = (isList: boolean): void => {
    const closed = open.at(-1);
    const mayEnd = next === "comma" || next === (isList ? "first item" : "first key");
    if (closed === undefined || !mayEnd || Array.isArray(closed.holder) !== isList) refuse();
    else {
      open.pop();
      copied -= closed.members;
      put(Object.freeze(closed.holder));
    }
  };

  const endText = ({ said, isKey }: OpenText): void => {
    text = undefined;
    const around = open.at(-1);
    if (!isKey) put(said);
    else if (around !== undefined) {
      around.key = said;
      next = "colon";
    }
  };

  const endEscape = (current: OpenText): void => {
    const begun = current.escape;
    if (begun.length < (begun[1] === "u" ? 6 : 2)) return;
    const meant = parsed(`"${begun}"`);
    if (typeof meant !== "string") refuse();
    else {
      current.said += meant;
      current.escape = "";
      isMore ||= !current.isKey;
    }
  };

  /** Take what is of the text; gives the place behind that. */
  const takeText = (current: OpenText, characters: string, from: number): number => {
    if (current.escape !== "") {
      current.escape += characters[from];
      endEscape(current);
      return from + 1;
    }
    const to = endOfPlain(characters, from);
    if (to > from) {
      current.said += characters.slice(from, to);
      isMore ||= !current.isKey;
    }
    const sign = characters[to];
    if (sign === '"') endText(current);
    else if (sign === "\\") current.escape = sign;
    else if (sign !== undefined) refuse();
    return to + 1;
  };

  const endWord = (): void => {
    const value = parsed(word);
    word = "";
    if (value === undefined) refuse();
    else {
      put(value);
      isMore = true;
    }
  };

  const takeSign = (sign: string): void => {
    const mayBegin = next === "value" || next === "first item";
    if (isSpace(sign)) return;
    if (sign === '"' && (mayBegin || next === "key" || next === "first key")) {
      text = { isKey: !mayBegin, said: "", escape: "" };
      isMore ||= mayBegin;
    } else if (sign === "{" && mayBegin) begin({});
    else if (sign === "[" && mayBegin) begin([]);
    else if (sign === "}" || sign === "]") end(sign === "]");
    else if (sign === ":" && next === "colon") next = "value";
    else if (sign === "," && next === "comma") next = Array.isArray(open.at(-1)?.holder) ? "value" : "key";
    else if (mayBegin && sign !== "," && sign !== ":") word = sign;
    else refuse();
  };

  const takeLead = (sign: string): void => {
    if (sign === "{" || sign === "[") {
      if (fence.test(lead)) begin(sign === "{" ? {} : []);
      else refuse();
      return;
    }
    // Of spaces one is enough to know, or the break of the line that they hold.
    const isBlank = sign.trim() === "";
    if (isBlank && (lead === "" || lead.endsWith("\n"))) return;
    lead = isBlank ? lead.trimEnd() + sign : lead + sign;
    if (!fenceToBe.test(lead)) refuse();
  };

  const takeOutside = (sign: string): void => {
    if (word !== "") endWord();
    if (next === "start") takeLead(sign);
    else if (next !== "nothing") takeSign(sign);
  };

  return {
    add: (characters) => {
      isMore = false;
      for (let at = 0; at < characters.length && next !== "nothing"; ) {
        const sign = characters.charAt(at);
        if (text !== undefined) at = takeText(text, characters, at);
        else if (word !== "" && !endsWord(sign)) {
          word += sign;
          at += 1;
        } else {
          takeOutside(sign);
          at += 1;
        }
      }
      return isMore && !isBroken;
    },
    read: () => {
      if (isBroken) return undefined;
      if (open.length === 0) return whole;
      let inner: unknown = text === undefined || text.isKey ? nothing : text.said;
      for (const { holder, key } of open.toReversed()) {
        const copy: Holder = Array.isArray(holder) ? [...holder] : { ...holder };
        if (inner !== nothing) putInto({ holder: copy, key }, inner);
        inner = Object.freeze(copy);
      }
      return inner;
    },
    copied: () => copied,
  };
}

function putInto({ holder, key }: Pick<Open, "holder" | "key">, value: unknown): void {
  if (Array.isArray(holder)) holder.push(value);
  // A key may be one that leads to the prototype.
  else Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
}

/** The place of the next character that ends a text, begins an escape or may stand in no text. */
function endOfPlain(characters: string, from: number): number {
  for (let at = from; at < characters.length; at++) {
    const code = characters.charCodeAt(at);
    if (code === quote || code === backslash || code < space) return at;
  }
  return characters.length;
}

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

function isSpace(sign: string): boolean {
  return sign === " " || sign === "\n" || sign === "\r" || sign === "\t";
}

function endsWord(sign: string): boolean {
  return isSpace(sign) || sign === "," || sign === "]" || sign === "}";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
