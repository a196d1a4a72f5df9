/**
 * Finds personal data in texts: e-mail addresses, card numbers, IBANs, phone numbers and IP addresses. Scans a text
 * once. Each match lies within one chain of words (see `streamChains`), so that a text can be processed in pieces.
 */

/** Kind of personal data. */
export type PersonalKind = "email" | "card" | "iban" | "phone" | "ip";

/** All kinds, in order of precedence for overlapping matches. */
export const personalKinds: readonly PersonalKind[] = ["email", "iban", "card", "ip", "phone"];

/** Match in a text. */
export interface PersonalMatch<Kind extends string = PersonalKind> {
  readonly kind: Kind;
  readonly start: number;
  readonly end: number;
}

/** Finds personal data of the given kinds, in text order, without overlaps. */
export function findPersonal(text: string, kinds: ReadonlySet<PersonalKind>): readonly PersonalMatch[] {
  const found: PersonalMatch[] = [];
  for (const [start, end] of streamChains(text)) {
    let from = start;
    while (from < end) {
      const next = findNext(text, from, end, kinds);
      if (next === undefined) break;
      found.push(next);
      from = next.end;
    }
  }
  return found;
}

/**
 * Streams the chains of a text that can contain a match: words with a digit or an `@`, joined by single separators.
 */
function* streamChains(text: string): Generator<readonly [number, number]> {
  let start = -1;
  let end = 0;
  let index = 0;
  while (index < text.length) {
    if (isSpace(text.charCodeAt(index))) {
      index += 1;
      continue;
    }
    const wordStart = index;
    const shape = createWordShape();
    for (; index < text.length && !isSpace(text.charCodeAt(index)); index++) shape.add(text.charCodeAt(index));
    const kind = shape.classify();
    const isNext = start >= 0 && wordStart === end + 1 && isWordSeparator(text.charCodeAt(end));
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

/**
 * Classification of a word by its characters: a match may span to the next word (`chain`), lie in the word (`alone`),
 * or not exist (`plain`).
 */
export interface WordShape {
  readonly add: (code: number) => void;
  readonly classify: () => "chain" | "alone" | "plain";
}

/** Creates the shape of an empty word. */
export function createWordShape(): WordShape {
  let length = 0;
  let uppers = 0;
  let hasDigit = false;
  let hasAtSign = false;
  return {
    add: (code) => {
      length += 1;
      if (code >= 0x41 && code <= 0x5a) uppers += 1;
      else if (isDigit(code)) hasDigit = true;
      else if (code === atSign) hasAtSign = true;
    },
    // Four capital letters can be the bank code of a grouped IBAN.
    classify: () => (hasDigit || (length === 4 && uppers === 4) ? "chain" : hasAtSign ? "alone" : "plain"),
  };
}

/** True for a separator between words of a chain. */
export function isWordSeparator(code: number): boolean {
  return code === space || code === noBreakSpace;
}

export function isSpace(code: number): boolean {
  return code <= space || code === noBreakSpace || code === 0x2028 || code === 0x2029 || code === 0x3000;
}

function findNext(
  text: string,
  start: number,
  end: number,
  kinds: ReadonlySet<PersonalKind>,
): PersonalMatch | undefined {
  for (let index = start; index < end; index++) {
    const code = text.charCodeAt(index);
    const before = index === start ? -1 : text.charCodeAt(index - 1);
    if (kinds.has("email") && code === atSign) {
      const email = findEmail(text, start, index, end);
      if (email !== undefined) return email;
    }
    if (isAlphanumeric(code) && !isAlphanumeric(before)) {
      // An e-mail address that begins here is found at its `@` and takes precedence.
      if (kinds.has("email") && isInEmail(text, index, end)) continue;
      const ibanEnd = kinds.has("iban") ? findIbanEnd(text, index, end) : index;
      if (ibanEnd > index) return { kind: "iban", start: index, end: ibanEnd };
    }
    if (isNumberStart(text, index, end, before)) {
      const number = findNumber(text, index, end, before, kinds);
      if (number !== undefined) return number;
    }
    if (kinds.has("ip") && (isHex(code) || code === colon) && !isIpCharacter(before) && !isWordCharacter(before)) {
      const ipEnd = findIp6End(text, index, end);
      if (ipEnd > index) return { kind: "ip", start: index, end: ipEnd };
    }
  }
  return undefined;
}

// E-mail addresses.

function findEmail(text: string, from: number, atIndex: number, end: number): PersonalMatch | undefined {
  let start = atIndex;
  while (start > from && isLocalPartCharacter(text.charCodeAt(start - 1))) start -= 1;
  while (start < atIndex && !isWordCharacter(text.charCodeAt(start))) start += 1;
  let stop = atIndex + 1;
  while (stop < end && isDomainCharacter(text.charCodeAt(stop))) stop += 1;
  while (stop > atIndex && !isWordCharacter(text.charCodeAt(stop - 1))) stop -= 1;
  const domain = text.slice(atIndex + 1, stop);
  const lastDot = domain.lastIndexOf(".");
  const hasTopLevelDomain = lastDot > 0 && domain.length - lastDot > 2 && !isDigit(domain.charCodeAt(lastDot + 1));
  return start < atIndex && hasTopLevelDomain ? { kind: "email", start, end: stop } : undefined;
}

/** True when the local part of an e-mail address continues from here to an `@`. Scans each position at most twice. */
function isInEmail(text: string, index: number, end: number): boolean {
  const stop = Math.min(end, index + 64);
  for (let next = index; next < stop; next++) {
    const code = text.charCodeAt(next);
    if (code === atSign) return next > index && findEmail(text, index, next, end) !== undefined;
    if (!isLocalPartCharacter(code)) return false;
  }
  return false;
}

// IBANs.

/**
 * Returns the end of an IBAN: two letters, two digits, and 11 to 30 letters or digits, optionally grouped, with
 * remainder 1 modulo 97.
 */
function findIbanEnd(text: string, start: number, end: number): number {
  if (!isLetter(text.charCodeAt(start)) || !isLetter(text.charCodeAt(start + 1))) return start;
  if (!isDigit(text.charCodeAt(start + 2)) || !isDigit(text.charCodeAt(start + 3))) return start;
  const head = text.slice(start, start + 4);
  let remainder = 0;
  let length = 4;
  let matchEnd = start;
  for (let index = start + 4; index < end && length < 34; index++) {
    const code = text.charCodeAt(index);
    if (isWordSeparator(code) && length % 4 === 0) continue;
    if (!isAlphanumeric(code)) break;
    remainder = appendModulo97(remainder, code);
    length += 1;
    const isComplete = length >= 15 && !isAlphanumeric(text.charCodeAt(index + 1));
    if (isComplete && [...head].reduce((sum, letter) => appendModulo97(sum, letter.charCodeAt(0)), remainder) === 1)
      matchEnd = index + 1;
  }
  return matchEnd;
}

/** Appends a character to a number modulo 97; letters count from 10. */
function appendModulo97(remainder: number, code: number): number {
  if (isDigit(code)) return (remainder * 10 + code - zero) % 97;
  return (remainder * 100 + (code | 0x20) - 0x61 + 10) % 97;
}

// Numbers: cards, phones, IPv4 addresses.

interface DigitGroup {
  readonly start: number;
  readonly end: number;
}

function isNumberStart(text: string, index: number, end: number, before: number): boolean {
  const code = text.charCodeAt(index);
  if (isDigit(code)) return !isDigit(before) && !isLetter(before);
  const next = index + 1 < end ? text.charCodeAt(index + 1) : -1;
  if (code === plus) return isDigit(next);
  return code === openParenthesis && (isDigit(next) || next === plus);
}

function findNumber(
  text: string,
  index: number,
  end: number,
  before: number,
  kinds: ReadonlySet<PersonalKind>,
): PersonalMatch | undefined {
  const groups = parseDigitGroups(text, index, end);
  if (isDigit(text.charCodeAt(index))) {
    const card = kinds.has("card") ? findCardEnd(text, groups) : index;
    if (card > index) return { kind: "card", start: index, end: card };
    const ip = kinds.has("ip") && before !== dot ? findIp4End(text, groups) : index;
    if (ip > index) return { kind: "ip", start: index, end: ip };
  }
  const phone = kinds.has("phone") && !isNumberCharacter(before) ? findPhoneEnd(text, index, groups) : index;
  return phone > index ? { kind: "phone", start: index, end: phone } : undefined;
}

/** Parses groups of digits, separated by at most a few separators; limited to the length of the longest number. */
function parseDigitGroups(text: string, index: number, end: number): readonly DigitGroup[] {
  const groups: DigitGroup[] = [];
  let position = index;
  while (position < end && groups.length < 19) {
    let separators = 0;
    while (
      position < end &&
      isNumberSeparator(text.charCodeAt(position)) &&
      separators < (groups.length === 0 ? 2 : 3)
    ) {
      position += 1;
      separators += 1;
    }
    const start = position;
    while (position < end && isDigit(text.charCodeAt(position)) && position - start < 20) position += 1;
    if (position === start) break;
    groups.push({ start, end: position });
  }
  return groups;
}

/**
 * Returns the end of a card number: 13 to 19 digits with a valid Luhn checksum, in one group, or in groups of 3 to 7
 * digits after a first group of 4.
 */
function findCardEnd(text: string, groups: readonly DigitGroup[]): number {
  const [first] = groups;
  if (first === undefined || !/[2-6]/.test(text.charAt(first.start))) return first?.start ?? 0;
  let digits = "";
  let matchEnd = first.start;
  for (const [index, { start, end }] of groups.entries()) {
    const before = groups[index - 1];
    if (before !== undefined && !(start - before.end === 1 && isCardSeparator(text.charCodeAt(before.end)))) break;
    if (index > 0 && !(first.end - first.start === 4 && end - start >= 3 && end - start <= 7)) break;
    digits += text.slice(start, end);
    if (digits.length > 19) break;
    const isComplete = !isLetter(text.charCodeAt(end)) && !isDigit(text.charCodeAt(end));
    if (digits.length >= 13 && isComplete && isLuhnValid(digits)) matchEnd = end;
  }
  return matchEnd;
}

function isLuhnValid(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - zero;
    const doubled = index % 2 === 0 ? digit : digit * 2;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Returns the end of an IPv4 address: exactly four dot-separated numbers up to 255. */
function findIp4End(text: string, groups: readonly DigitGroup[]): number {
  const octets = groups.slice(0, 4);
  const [first] = octets;
  const last = octets[3];
  if (first === undefined || last === undefined) return first?.start ?? 0;
  const isAddress = octets.every(({ start, end }, index) => {
    const before = octets[index - 1];
    const isJoined = before === undefined || (start - before.end === 1 && text.charCodeAt(before.end) === dot);
    return isJoined && end - start <= 3 && Number(text.slice(start, end)) <= 255;
  });
  const hasFifth = text.charCodeAt(last.end) === dot && isDigit(text.charCodeAt(last.end + 1));
  return isAddress && !hasFifth && !isLetter(text.charCodeAt(last.end)) ? last.end : first.start;
}

/**
 * Returns the end of a phone number. With `+`: 8 to 15 digits. With a leading 0, in a first group of three or more
 * digits or in pairs: 9 to 13 digits, or 10 or 11 ungrouped digits. Otherwise groups of 3, 3 and 4 digits, as in
 * North America. Dates and plain numbers do not match.
 */
function findPhoneEnd(text: string, index: number, groups: readonly DigitGroup[]): number {
  const isInternational = text.charCodeAt(index) === plus || text.charCodeAt(index + 1) === plus;
  const [first, second, third] = groups;
  if (first === undefined) return index;
  const isPairs = groups.length >= 5 && groups.slice(0, 5).every(({ start, end }) => end - start === 2);
  if (isInternational || (text.charCodeAt(first.start) === zero && (first.end - first.start > 2 || isPairs)))
    return findGroupsEnd(text, index, groups, isInternational ? [8, 15] : [9, 13], isInternational);
  const countryGroups = first.end - first.start === 1 && text.charAt(first.start) === "1" ? 1 : 0;
  const parts = countryGroups === 1 ? groups.slice(1, 4) : [first, second, third];
  const sizes = parts.map((part) => (part === undefined ? 0 : part.end - part.start));
  const last = parts[2];
  return sizes.join() === "3,3,4" &&
    last !== undefined &&
    !isDigit(text.charCodeAt(last.end)) &&
    !isLetter(text.charCodeAt(last.end))
    ? last.end
    : index;
}

/** Returns the end of the longest run of groups with an allowed digit count. */
function findGroupsEnd(
  text: string,
  index: number,
  groups: readonly DigitGroup[],
  [min, max]: readonly [number, number],
  isInternational: boolean,
): number {
  let digits = 0;
  let matchEnd = index;
  for (const [groupIndex, { start, end }] of groups.entries()) {
    digits += end - start;
    if (digits > max) break;
    const isComplete = digits >= min && !isLetter(text.charCodeAt(end)) && !isDigit(text.charCodeAt(end));
    const isUngrouped = groupIndex === 0 && text.charCodeAt(index) !== openParenthesis;
    if (isComplete && (isInternational || !isUngrouped || digits === 10 || digits === 11)) matchEnd = end;
  }
  return matchEnd;
}

// IPv6 addresses.

function findIp6End(text: string, start: number, end: number): number {
  let stop = start;
  let hasDigit = false;
  while (stop < end && stop - start < 46 && isIpCharacter(text.charCodeAt(stop))) {
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

const atSign = 0x40;
const colon = 0x3a;
const dot = 0x2e;
const plus = 0x2b;
const zero = 0x30;
const space = 0x20;
const noBreakSpace = 0xa0;
const openParenthesis = 0x28;

function isDigit(code: number): boolean {
  return code >= zero && code <= 0x39;
}

/** Latin letters, including accented letters. */
function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0xc0 && code <= 0x24f);
}

function isAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= 0x61 && lower <= 0x7a);
}

function isWordCharacter(code: number): boolean {
  return isDigit(code) || isLetter(code);
}

function isLocalPartCharacter(code: number): boolean {
  return (
    isWordCharacter(code) ||
    code === dot ||
    code === plus ||
    code === 0x2d ||
    code === 0x5f ||
    code === 0x25 ||
    code === 0x27
  );
}

function isDomainCharacter(code: number): boolean {
  return isWordCharacter(code) || code === dot || code === 0x2d;
}

function isHex(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= 0x61 && lower <= 0x66);
}

function isIpCharacter(code: number): boolean {
  return isHex(code) || code === colon || code === dot;
}

/** True for a separator between digits of a number. */
function isNumberSeparator(code: number): boolean {
  return (
    isWordSeparator(code) ||
    code === dot ||
    code === plus ||
    code === 0x2d ||
    code === 0x2f ||
    code === openParenthesis ||
    code === 0x29
  );
}

function isCardSeparator(code: number): boolean {
  return isWordSeparator(code) || code === 0x2d;
}

/** True for a character that continues a number: a part of a longer number is no match. */
function isNumberCharacter(code: number): boolean {
  return isWordCharacter(code) || code === dot || code === 0x2d || code === 0x2f || code === plus;
}
