/**
 * Personal data in texts: e-mail addresses, card numbers, IBANs, phone numbers and IP addresses. A text is walked once, and
 * each find stands within a run of words that `chainsOf` does not part, so that a text may come in pieces.
 */

/** What is looked for. */
export type PersonalKind = "email" | "card" | "iban" | "phone" | "ip";

/** The kinds, in the order in which one of them claims a place. */
export const personalKinds: readonly PersonalKind[] = ["email", "iban", "card", "ip", "phone"];

/** A place in a text. */
export interface Found<Kind extends string = PersonalKind> {
  readonly kind: Kind;
  readonly start: number;
  readonly end: number;
}

/** Find personal data of these kinds, in the order of the text; no two places overlap. */
export function findPersonal(text: string, kinds: ReadonlySet<PersonalKind>): readonly Found[] {
  const found: Found[] = [];
  for (const [start, end] of chainsIn(text)) {
    let from = start;
    while (from < end) {
      const next = nextIn(text, from, end, kinds);
      if (next === undefined) break;
      found.push(next);
      from = next.end;
    }
  }
  return found;
}

/** The runs of words of a text that can hold a find: words with a digit or an `@`, and what may stand between such. */
function* chainsIn(text: string): Generator<readonly [number, number]> {
  let start = -1;
  let end = 0;
  let index = 0;
  while (index < text.length) {
    if (isSpace(text.charCodeAt(index))) {
      index += 1;
      continue;
    }
    const wordStart = index;
    const shape = wordShape();
    for (; index < text.length && !isSpace(text.charCodeAt(index)); index++) shape.add(text.charCodeAt(index));
    const kind = shape.kind();
    const isNext = start >= 0 && wordStart === end + 1 && isJoint(text.charCodeAt(end));
    if (start >= 0 && !(isNext && kind === "chain")) {
      yield [start, end];
      start = -1;
    }
    if (kind === "plain") continue;
    if (start < 0) start = wordStart;
    end = index;
    if (kind === "alone") {
      yield [start, end];
      start = -1;
    }
  }
  if (start >= 0) yield [start, end];
}

/** What is known of a word by its characters: whether a find may reach from it to others, be in it alone, or is not in it. */
export interface WordShape {
  readonly add: (code: number) => void;
  readonly kind: () => "chain" | "alone" | "plain";
}

/** A word of which nothing is known yet. */
export function wordShape(): WordShape {
  let length = 0;
  let uppers = 0;
  let hasDigit = false;
  let hasSign = false;
  return {
    add: (code) => {
      length += 1;
      if (code >= 0x41 && code <= 0x5a) uppers += 1;
      else if (isDigit(code)) hasDigit = true;
      else if (code === at) hasSign = true;
    },
    // The letters of a bank stand by themselves in an IBAN that is written in groups.
    kind: () => (hasDigit || (length === 4 && uppers === 4) ? "chain" : hasSign ? "alone" : "plain"),
  };
}

/** What one word of a chain is told from the next by. */
export function isJoint(code: number): boolean {
  return code === space || code === noBreak;
}

export function isSpace(code: number): boolean {
  return code <= space || code === noBreak || code === 0x2028 || code === 0x2029 || code === 0x3000;
}

function nextIn(text: string, start: number, end: number, kinds: ReadonlySet<PersonalKind>): Found | undefined {
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index);
    const before = index === start ? -1 : text.charCodeAt(index - 1);
    if (kinds.has("email") && code === at) {
      const email = emailAround(text, start, index, end);
      if (email !== undefined) return email;
    }
    if (isAlphanumeric(code) && !isAlphanumeric(before)) {
      // An address that begins here is found at its `@`, and claims what stands before it.
      if (kinds.has("email") && isInEmail(text, index, end)) continue;
      const ibanEnd = kinds.has("iban") ? endOfIban(text, index, end) : index;
      if (ibanEnd > index) return { kind: "iban", start: index, end: ibanEnd };
    }
    if (isNumberStart(text, index, end, before)) {
      const number = numberAt(text, index, end, before, kinds);
      if (number !== undefined) return number;
    }
    if (kinds.has("ip") && (isHex(code) || code === colon) && !isOfAddress(before) && !isWord(before)) {
      const ipEnd = endOfIp6(text, index, end);
      if (ipEnd > index) return { kind: "ip", start: index, end: ipEnd };
    }
  }
  return undefined;
}

// E-mail addresses.

function emailAround(text: string, from: number, sign: number, end: number): Found | undefined {
  let start = sign;
  while (start > from && isLocal(text.charCodeAt(start - 1))) start -= 1;
  while (start < sign && !isWord(text.charCodeAt(start))) start += 1;
  let stop = sign + 1;
  while (stop < end && isDomain(text.charCodeAt(stop))) stop += 1;
  while (stop > sign && !isWord(text.charCodeAt(stop - 1))) stop -= 1;
  const domain = text.slice(sign + 1, stop);
  const lastDot = domain.lastIndexOf(".");
  const isTop = lastDot > 0 && domain.length - lastDot > 2 && !isDigit(domain.charCodeAt(lastDot + 1));
  return start < sign && isTop ? { kind: "email", start, end: stop } : undefined;
}

/** Whether the local part of an address goes on from here up to an `@`. Each place of a text is walked once or twice. */
function isInEmail(text: string, index: number, end: number): boolean {
  const stop = Math.min(end, index + 64);
  for (let next = index; next < stop; next++) {
    const code = text.charCodeAt(next);
    if (code === at) return next > index && emailAround(text, index, next, end) !== undefined;
    if (!isLocal(code)) return false;
  }
  return false;
}

// IBANs.

/** Two letters, two digits, then 11 to 30 letters and digits, in groups or not, whose rest by 97 is 1. */
function endOfIban(text: string, start: number, end: number): number {
  if (!isLetter(text.charCodeAt(start)) || !isLetter(text.charCodeAt(start + 1))) return start;
  if (!isDigit(text.charCodeAt(start + 2)) || !isDigit(text.charCodeAt(start + 3))) return start;
  const head = text.slice(start, start + 4);
  let rest = 0;
  let length = 4;
  let found = start;
  for (let index = start + 4; index < end && length < 34; index++) {
    const code = text.charCodeAt(index);
    if (isJoint(code) && length % 4 === 0) continue;
    if (!isAlphanumeric(code)) break;
    rest = restBy97(rest, code);
    length += 1;
    const isWhole = length >= 15 && !isAlphanumeric(text.charCodeAt(index + 1));
    if (isWhole && [...head].reduce((sum, letter) => restBy97(sum, letter.charCodeAt(0)), rest) === 1)
      found = index + 1;
  }
  return found;
}

/** The rest of a number by 97 with one more character behind it; a letter counts from 10 on. */
function restBy97(rest: number, code: number): number {
  if (isDigit(code)) return (rest * 10 + code - zero) % 97;
  return (rest * 100 + (code | 0x20) - 0x61 + 10) % 97;
}

// Numbers: cards, phones, IPv4 addresses.

interface Group {
  readonly start: number;
  readonly end: number;
}

function isNumberStart(text: string, index: number, end: number, before: number): boolean {
  const code = text.charCodeAt(index);
  if (isDigit(code)) return !isDigit(before) && !isLetter(before);
  const next = index + 1 < end ? text.charCodeAt(index + 1) : -1;
  if (code === plus) return isDigit(next);
  return code === openBracket && (isDigit(next) || next === plus);
}

function numberAt(
  text: string,
  index: number,
  end: number,
  before: number,
  kinds: ReadonlySet<PersonalKind>,
): Found | undefined {
  const groups = groupsFrom(text, index, end);
  if (isDigit(text.charCodeAt(index))) {
    const card = kinds.has("card") ? endOfCard(text, groups) : index;
    if (card > index) return { kind: "card", start: index, end: card };
    const ip = kinds.has("ip") && before !== dot ? endOfIp4(text, groups) : index;
    if (ip > index) return { kind: "ip", start: index, end: ip };
  }
  const phone = kinds.has("phone") && !isOfNumber(before) ? endOfPhone(text, index, groups) : index;
  return phone > index ? { kind: "phone", start: index, end: phone } : undefined;
}

/** Groups of digits with one or two signs between them: at most as many as the longest number has digits. */
function groupsFrom(text: string, index: number, end: number): readonly Group[] {
  const groups: Group[] = [];
  let place = index;
  while (place < end && groups.length < 19) {
    let signs = 0;
    while (place < end && isBetween(text.charCodeAt(place)) && signs < (groups.length === 0 ? 2 : 3)) {
      place += 1;
      signs += 1;
    }
    const start = place;
    while (place < end && isDigit(text.charCodeAt(place)) && place - start < 20) place += 1;
    if (place === start) break;
    groups.push({ start, end: place });
  }
  return groups;
}

/** 13 to 19 digits that pass Luhn's check, in one piece or in groups of 3 to 7 of which the first has 4. */
function endOfCard(text: string, groups: readonly Group[]): number {
  const [first] = groups;
  if (first === undefined || !/[2-6]/.test(text.charAt(first.start))) return first?.start ?? 0;
  let digits = "";
  let found = first.start;
  for (const [index, { start, end }] of groups.entries()) {
    const before = groups[index - 1];
    if (before !== undefined && !(start - before.end === 1 && isCardJoint(text.charCodeAt(before.end)))) break;
    if (index > 0 && !(first.end - first.start === 4 && end - start >= 3 && end - start <= 7)) break;
    digits += text.slice(start, end);
    if (digits.length > 19) break;
    const isOver = !isLetter(text.charCodeAt(end)) && !isDigit(text.charCodeAt(end));
    if (digits.length >= 13 && isOver && passesLuhn(digits)) found = end;
  }
  return found;
}

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - zero;
    const doubled = index % 2 === 0 ? digit : digit * 2;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Four numbers up to 255 with dots between them, and no fifth. */
function endOfIp4(text: string, groups: readonly Group[]): number {
  const four = groups.slice(0, 4);
  const [first] = four;
  const last = four[3];
  if (first === undefined || last === undefined) return first?.start ?? 0;
  const isAddress = four.every(({ start, end }, index) => {
    const before = four[index - 1];
    const isJoined = before === undefined || (start - before.end === 1 && text.charCodeAt(before.end) === dot);
    return isJoined && end - start <= 3 && Number(text.slice(start, end)) <= 255;
  });
  const isFifth = text.charCodeAt(last.end) === dot && isDigit(text.charCodeAt(last.end + 1));
  return isAddress && !isFifth && !isLetter(text.charCodeAt(last.end)) ? last.end : first.start;
}

/**
 * With `+`: 8 to 15 digits. Beginning with 0, in a group of three or in pairs: 9 to 13 digits, or 10 or 11 in one piece.
 * Otherwise three, three and four digits, as in North America. Dates and plain numbers are none.
 */
function endOfPhone(text: string, index: number, groups: readonly Group[]): number {
  const isInternational = text.charCodeAt(index) === plus || text.charCodeAt(index + 1) === plus;
  const [first, second, third] = groups;
  if (first === undefined) return index;
  const isPairs = groups.length >= 5 && groups.slice(0, 5).every(({ start, end }) => end - start === 2);
  if (isInternational || (text.charCodeAt(first.start) === zero && (first.end - first.start > 2 || isPairs)))
    return endOfGroups(text, index, groups, isInternational ? [8, 15] : [9, 13], isInternational);
  const country = first.end - first.start === 1 && text.charAt(first.start) === "1" ? 1 : 0;
  const parts = country === 1 ? groups.slice(1, 4) : [first, second, third];
  const sizes = parts.map((part) => (part === undefined ? 0 : part.end - part.start));
  const last = parts[2];
  return sizes.join() === "3,3,4" &&
    last !== undefined &&
    !isDigit(text.charCodeAt(last.end)) &&
    !isLetter(text.charCodeAt(last.end))
    ? last.end
    : index;
}

/** The longest run of groups that has so many digits. */
function endOfGroups(
  text: string,
  index: number,
  groups: readonly Group[],
  [least, most]: readonly [number, number],
  isInternational: boolean,
): number {
  let digits = 0;
  let found = index;
  for (const [nth, { start, end }] of groups.entries()) {
    digits += end - start;
    if (digits > most) break;
    const isWhole = digits >= least && !isLetter(text.charCodeAt(end)) && !isDigit(text.charCodeAt(end));
    const isInOnePiece = nth === 0 && text.charCodeAt(index) !== openBracket;
    if (isWhole && (isInternational || !isInOnePiece || digits === 10 || digits === 11)) found = end;
  }
  return found;
}

// IPv6 addresses.

function endOfIp6(text: string, start: number, end: number): number {
  let stop = start;
  let hasDigit = false;
  while (stop < end && stop - start < 46 && isOfAddress(text.charCodeAt(stop))) {
    hasDigit ||= isDigit(text.charCodeAt(stop));
    stop += 1;
  }
  if (!hasDigit || isLetter(text.charCodeAt(stop))) return start;
  while (
    stop > start &&
    (text.charCodeAt(stop - 1) === dot || (text.charCodeAt(stop - 1) === colon && text.charCodeAt(stop - 2) !== colon))
  )
    stop -= 1;
  return isIp6(text.slice(start, stop)) ? stop : start;
}

function isIp6(text: string): boolean {
  const halves = text.split("::");
  if (!text.includes(":") || halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  if (!groups.every((group) => /^[0-9A-Fa-f]{1,4}$/.test(group))) return false;
  return halves.length === 2 ? groups.length < 8 && groups.length > 0 : groups.length === 8;
}

// Characters.

const at = 0x40;
const colon = 0x3a;
const dot = 0x2e;
const plus = 0x2b;
const zero = 0x30;
const space = 0x20;
const noBreak = 0xa0;
const openBracket = 0x28;

function isDigit(code: number): boolean {
  return code >= zero && code <= 0x39;
}

/** Letters of the Latin alphabets, with accents. */
function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0xc0 && code <= 0x24f);
}

function isAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= 0x61 && lower <= 0x7a);
}

function isWord(code: number): boolean {
  return isDigit(code) || isLetter(code);
}

function isLocal(code: number): boolean {
  return (
    isWord(code) || code === dot || code === plus || code === 0x2d || code === 0x5f || code === 0x25 || code === 0x27
  );
}

function isDomain(code: number): boolean {
  return isWord(code) || code === dot || code === 0x2d;
}

function isHex(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= 0x61 && lower <= 0x66);
}

function isOfAddress(code: number): boolean {
  return isHex(code) || code === colon || code === dot;
}

/** What may stand between the digits of a number. */
function isBetween(code: number): boolean {
  return (
    isJoint(code) ||
    code === dot ||
    code === plus ||
    code === 0x2d ||
    code === 0x2f ||
    code === openBracket ||
    code === 0x29
  );
}

function isCardJoint(code: number): boolean {
  return isJoint(code) || code === 0x2d;
}

/** What a number goes on from: a piece of a longer one is none by itself. */
function isOfNumber(code: number): boolean {
  return isWord(code) || code === dot || code === 0x2d || code === 0x2f || code === plus;
}
