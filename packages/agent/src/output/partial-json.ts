/**
 * Incremental JSON parser: reads the complete part of a growing JSON text. Linear time: visits each character once.
 */

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

/** A complete Markdown code fence before JSON, and a prefix of a fence. */
const completeFence = /^(?:`{3}(?:json)?\s*\n)?$/;
const partialFence = /^(?:`{0,3}|`{3}(?:js?|jso|json)?\s*)$/;

/** Maximum nesting depth, equal to the limit of persisted JSON. */
const maxDepth = 500;

/**
 * Incremental parser of a JSON text. Skips a leading Markdown code fence, which models add without schema
 * enforcement.
 */
export class PartialJson {
  readonly #open: OpenContainer[] = [];
  #next: ExpectedToken = "start";
  #prefix = "";
  #literal = "";
  #openString: OpenString | undefined;
  #root: unknown;
  #isInvalid = false;
  #hasGrown = false;
  #openMembers = 0;

  /** Appends characters; returns true when the readable value has grown. */
  add(characters: string): boolean {
    this.#hasGrown = false;
    for (let position = 0; position < characters.length && this.#next !== "nothing"; )
      if (this.#openString !== undefined) position = this.#consumeString(this.#openString, characters, position);
      else {
        this.#consumeOutsideString(characters.charAt(position));
        position += 1;
      }
    return this.#hasGrown && !this.#isInvalid;
  }

  /**
   * Returns the value read so far; undefined before the first object or array, and for invalid JSON. Includes
   * incomplete strings, but no incomplete number, literal or key. Values are frozen and share complete members.
   */
  read(): unknown {
    if (this.#isInvalid) return undefined;
    if (this.#open.length === 0) return this.#root;
    const openString = this.#openString;
    let inner: unknown = openString === undefined || openString.isKey ? absent : openString.content;
    for (const { holder, key } of this.#open.toReversed()) {
      const copy: Holder = Array.isArray(holder) ? [...holder] : { ...holder };
      if (inner !== absent) setMember({ holder: copy, key }, inner);
      inner = Object.freeze(copy);
    }
    return inner;
  }

  /** Returns the number of members that `read` copies: the members of all open objects and arrays. */
  countCopies(): number {
    return this.#openMembers;
  }

  #consumeOutsideString(character: string): void {
    if (this.#literal !== "" && !isLiteralEnd(character)) {
      this.#literal += character;
      return;
    }
    if (this.#literal !== "") this.#finishLiteral();
    if (this.#next === "start") this.#consumePrefix(character);
    else if (this.#next !== "nothing") this.#consumeToken(character);
  }

  #consumePrefix(character: string): void {
    if (character === "{" || character === "[") {
      if (completeFence.test(this.#prefix)) this.#openContainer(character === "{" ? {} : []);
      else this.#refuse();
      return;
    }
    // Stores at most a single whitespace character in a row, or a line break: enough to recognize a fence, in bounded
    // memory.
    const isBlank = character.trim() === "";
    if (isBlank && (this.#prefix === "" || this.#prefix.endsWith("\n"))) return;
    this.#prefix = isBlank ? this.#prefix.trimEnd() + character : this.#prefix + character;
    if (!partialFence.test(this.#prefix)) this.#refuse();
  }

  #consumeToken(character: string): void {
    const next = this.#next;
    const expectsValue = next === "value" || next === "first item";
    if (isSpace(character)) return;
    if (character === '"' && (expectsValue || next === "key" || next === "first key")) {
      this.#openString = { isKey: !expectsValue, content: "", escape: "" };
      this.#hasGrown ||= expectsValue;
    } else if (character === "{" && expectsValue) this.#openContainer({});
    else if (character === "[" && expectsValue) this.#openContainer([]);
    else if (character === "}" || character === "]") this.#closeContainer(character);
    else if (character === ":" && next === "colon") this.#next = "value";
    else if (character === "," && next === "comma")
      this.#next = Array.isArray(this.#open.at(-1)?.holder) ? "value" : "key";
    else if (expectsValue && character !== "," && character !== ":") this.#literal = character;
    else this.#refuse();
  }

  #openContainer(holder: Holder): void {
    if (this.#open.length === maxDepth) {
      this.#refuse();
      return;
    }
    this.#open.push({ holder, key: "", members: 0 });
    this.#next = Array.isArray(holder) ? "first item" : "first key";
    this.#hasGrown = true;
  }

  #closeContainer(bracket: "}" | "]"): void {
    const closed = this.#open.at(-1);
    const isList = bracket === "]";
    const canClose = this.#next === "comma" || this.#next === (isList ? "first item" : "first key");
    if (closed === undefined || !canClose || Array.isArray(closed.holder) !== isList) this.#refuse();
    else {
      this.#open.pop();
      this.#openMembers -= closed.members;
      this.#addValue(Object.freeze(closed.holder));
    }
  }

  /** Consumes characters of the open string; returns the index after the last consumed character. */
  #consumeString(current: OpenString, characters: string, from: number): number {
    if (current.escape !== "") {
      current.escape += characters[from];
      this.#finishEscape(current);
      return from + 1;
    }
    const to = findPlainEnd(characters, from);
    if (to > from) {
      current.content += characters.slice(from, to);
      this.#hasGrown ||= !current.isKey;
    }
    const character = characters[to];
    if (character === '"') this.#closeString(current);
    else if (character === "\\") current.escape = character;
    else if (character !== undefined) this.#refuse();
    return to + 1;
  }

  #finishEscape(current: OpenString): void {
    const sequence = current.escape;
    if (sequence.length < (sequence[1] === "u" ? 6 : 2)) return;
    const decoded = tryParse(`"${sequence}"`);
    if (typeof decoded !== "string") this.#refuse();
    else {
      current.content += decoded;
      current.escape = "";
      this.#hasGrown ||= !current.isKey;
    }
  }

  #closeString({ content, isKey }: OpenString): void {
    this.#openString = undefined;
    const parent = this.#open.at(-1);
    if (!isKey) this.#addValue(content);
    else if (parent !== undefined) {
      parent.key = content;
      this.#next = "colon";
    }
  }

  #finishLiteral(): void {
    const value = tryParse(this.#literal);
    this.#literal = "";
    if (value === undefined) this.#refuse();
    else {
      this.#addValue(value);
      this.#hasGrown = true;
    }
  }

  #addValue(value: unknown): void {
    const parent = this.#open.at(-1);
    if (parent === undefined) this.#root = value;
    else {
      setMember(parent, value);
      parent.members += 1;
      this.#openMembers += 1;
    }
    this.#next = parent === undefined ? "nothing" : "comma";
  }

  #refuse(): void {
    this.#isInvalid = true;
    this.#next = "nothing";
  }
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
