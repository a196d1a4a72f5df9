/**
 * Incremental JSON parser: reads the complete part of a growing JSON text. Linear time: visits each character once.
 */

/** Incremental parser of one JSON text. */
export interface PartialJson {
  /** Appends characters; returns true when the readable value has grown. */
  readonly add: (characters: string) => boolean;
  /**
   * Returns the value read so far; undefined before the first object or array, and for invalid JSON. Includes
   * incomplete strings, but no incomplete number, literal or key. Values are frozen and share complete members.
   */
  readonly read: () => unknown;
  /** Returns the number of members that `read` copies: the members of all open objects and arrays. */
  readonly countCopies: () => number;
}

type Holder = unknown[] | Record<string, unknown>;

/** Open object or array, with the key of the next value. */
interface OpenContainer {
  readonly holder: Holder;
  key: string;
  members: number;
}

/** Expected next token, after whitespace. */
type ExpectedToken = "start" | "value" | "first item" | "key" | "first key" | "colon" | "comma" | "nothing";

/** Open string. */
interface OpenString {
  readonly isKey: boolean;
  content: string;
  /** Incomplete escape sequence. */
  escape: string;
}

const absent: unique symbol = Symbol("nothing");

/** A complete Markdown code fence before JSON, and a prefix of one. */
const completeFence = /^(?:`{3}(?:json)?\s*\n)?$/;
const partialFence = /^(?:`{0,3}|`{3}(?:js?|jso|json)?\s*)$/;

/** Maximum nesting depth, equal to the limit of persisted JSON. */
const maxDepth = 500;

/**
 * Creates an incremental JSON parser. Skips a leading Markdown code fence, which models add without schema
 * enforcement.
 */
export function createPartialJson(): PartialJson {
  const open: OpenContainer[] = [];
  let next: ExpectedToken = "start";
  let prefix = "";
  let literal = "";
  let openString: OpenString | undefined;
  let root: unknown;
  let isInvalid = false;
  let hasGrown = false;
  let openMembers = 0;

  const refuse = (): void => {
    isInvalid = true;
    next = "nothing";
  };

  const addValue = (value: unknown): void => {
    const parent = open.at(-1);
    if (parent === undefined) root = value;
    else {
      setMember(parent, value);
      parent.members += 1;
      openMembers += 1;
    }
    next = parent === undefined ? "nothing" : "comma";
  };

  const openContainer = (holder: Holder): void => {
    if (open.length === maxDepth) {
      refuse();
      return;
    }
    open.push({ holder, key: "", members: 0 });
    next = Array.isArray(holder) ? "first item" : "first key";
    hasGrown = true;
  };

  const closeContainer = (isList: boolean): void => {
    const closed = open.at(-1);
    const canClose = next === "comma" || next === (isList ? "first item" : "first key");
    if (closed === undefined || !canClose || Array.isArray(closed.holder) !== isList) refuse();
    else {
      open.pop();
      openMembers -= closed.members;
      addValue(Object.freeze(closed.holder));
    }
  };

  const closeString = ({ content, isKey }: OpenString): void => {
    openString = undefined;
    const parent = open.at(-1);
    if (!isKey) addValue(content);
    else if (parent !== undefined) {
      parent.key = content;
      next = "colon";
    }
  };

  const finishEscape = (current: OpenString): void => {
    const sequence = current.escape;
    if (sequence.length < (sequence[1] === "u" ? 6 : 2)) return;
    const decoded = tryParse(`"${sequence}"`);
    if (typeof decoded !== "string") refuse();
    else {
      current.content += decoded;
      current.escape = "";
      hasGrown ||= !current.isKey;
    }
  };

  /** Consumes characters of the open string; returns the index after them. */
  const consumeString = (current: OpenString, characters: string, from: number): number => {
    if (current.escape !== "") {
      current.escape += characters[from];
      finishEscape(current);
      return from + 1;
    }
    const to = findPlainEnd(characters, from);
    if (to > from) {
      current.content += characters.slice(from, to);
      hasGrown ||= !current.isKey;
    }
    const character = characters[to];
    if (character === '"') closeString(current);
    else if (character === "\\") current.escape = character;
    else if (character !== undefined) refuse();
    return to + 1;
  };

  const finishLiteral = (): void => {
    const value = tryParse(literal);
    literal = "";
    if (value === undefined) refuse();
    else {
      addValue(value);
      hasGrown = true;
    }
  };

  const consumeToken = (character: string): void => {
    const expectsValue = next === "value" || next === "first item";
    if (isSpace(character)) return;
    if (character === '"' && (expectsValue || next === "key" || next === "first key")) {
      openString = { isKey: !expectsValue, content: "", escape: "" };
      hasGrown ||= expectsValue;
    } else if (character === "{" && expectsValue) openContainer({});
    else if (character === "[" && expectsValue) openContainer([]);
    else if (character === "}" || character === "]") closeContainer(character === "]");
    else if (character === ":" && next === "colon") next = "value";
    else if (character === "," && next === "comma") next = Array.isArray(open.at(-1)?.holder) ? "value" : "key";
    else if (expectsValue && character !== "," && character !== ":") literal = character;
    else refuse();
  };

  const consumePrefix = (character: string): void => {
    if (character === "{" || character === "[") {
      if (completeFence.test(prefix)) openContainer(character === "{" ? {} : []);
      else refuse();
      return;
    }
    // Stores at most one whitespace character in a row, or a line break: a fence is recognized by them, and memory
    // stays bounded.
    const isBlank = character.trim() === "";
    if (isBlank && (prefix === "" || prefix.endsWith("\n"))) return;
    prefix = isBlank ? prefix.trimEnd() + character : prefix + character;
    if (!partialFence.test(prefix)) refuse();
  };

  const consumeOutsideString = (character: string): void => {
    if (literal !== "") finishLiteral();
    if (next === "start") consumePrefix(character);
    else if (next !== "nothing") consumeToken(character);
  };

  return {
    add: (characters) => {
      hasGrown = false;
      for (let position = 0; position < characters.length && next !== "nothing"; ) {
        const character = characters.charAt(position);
        if (openString !== undefined) position = consumeString(openString, characters, position);
        else if (literal !== "" && !isLiteralEnd(character)) {
          literal += character;
          position += 1;
        } else {
          consumeOutsideString(character);
          position += 1;
        }
      }
      return hasGrown && !isInvalid;
    },
    read: () => {
      if (isInvalid) return undefined;
      if (open.length === 0) return root;
      let inner: unknown = openString === undefined || openString.isKey ? absent : openString.content;
      for (const { holder, key } of open.toReversed()) {
        const copy: Holder = Array.isArray(holder) ? [...holder] : { ...holder };
        if (inner !== absent) setMember({ holder: copy, key }, inner);
        inner = Object.freeze(copy);
      }
      return inner;
    },
    countCopies: () => openMembers,
  };
}

function setMember({ holder, key }: Pick<OpenContainer, "holder" | "key">, value: unknown): void {
  if (Array.isArray(holder)) holder.push(value);
  // Defines the property: assignment to the key `__proto__` would change the prototype.
  else Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns the index of the next character that ends the string, starts an escape, or is invalid in a string. */
function findPlainEnd(characters: string, from: number): number {
  for (let position = from; position < characters.length; position++) {
    const code = characters.charCodeAt(position);
    if (code === quote || code === backslash || code < space) return position;
  }
  return characters.length;
}

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;

function isSpace(character: string): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}

function isLiteralEnd(character: string): boolean {
  return isSpace(character) || character === "," || character === "]" || character === "}";
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
