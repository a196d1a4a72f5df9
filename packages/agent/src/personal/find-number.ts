/** Finds personal numbers in text: card numbers, IPv4 addresses and phone numbers. */
import {
  dot,
  isCardSeparator,
  isDigit,
  isLetter,
  isNumberCharacter,
  isNumberSeparator,
  openParenthesis,
  plus,
  zero,
} from "./characters.ts";
import type { PersonalKind, PersonalMatch } from "./personal-kind.ts";

interface DigitGroup {
  readonly start: number;
  readonly end: number;
}

/** True if a number can start at `index`; `before` is the previous character code, -1 at the start. */
export function isNumberStart(text: string, index: number, end: number, before: number): boolean {
  const code = text.charCodeAt(index);
  if (isDigit(code)) return !isDigit(before) && !isLetter(before);
  const next = index + 1 < end ? text.charCodeAt(index + 1) : -1;
  if (code === plus) return isDigit(next);
  return code === openParenthesis && (isDigit(next) || next === plus);
}

/** Start of a possible number in the text before `end`; `before` is the previous character code, -1 at the start. */
interface NumberStart {
  readonly text: string;
  readonly index: number;
  readonly end: number;
  readonly before: number;
}

/** Finds a card number, IPv4 address or phone number that starts here. */
export function findNumber(
  { text, index, end, before }: NumberStart,
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
 * Returns the end of a card number: 13 to 19 digits with a valid Luhn checksum, in a single group, or in groups of 3 to
 * 7 digits after a first group of 4.
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
    return findGroupsEnd(text, index, groups, isInternational ? internationalNumber : nationalNumber);
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

/** Allowed digit counts of a phone number. */
interface DigitCounts {
  readonly min: number;
  readonly max: number;
  /** Allowed counts without groups; absent for all counts from `min` to `max`. */
  readonly ungrouped?: readonly number[];
}

const internationalNumber: DigitCounts = { min: 8, max: 15 };
const nationalNumber: DigitCounts = { min: 9, max: 13, ungrouped: [10, 11] };

/** Returns the end of the longest run of groups with an allowed digit count. */
function findGroupsEnd(
  text: string,
  index: number,
  groups: readonly DigitGroup[],
  { min, max, ungrouped }: DigitCounts,
): number {
  let digits = 0;
  let matchEnd = index;
  for (const [groupIndex, { start, end }] of groups.entries()) {
    digits += end - start;
    if (digits > max) break;
    const isComplete = digits >= min && !isLetter(text.charCodeAt(end)) && !isDigit(text.charCodeAt(end));
    const isUngrouped = groupIndex === 0 && text.charCodeAt(index) !== openParenthesis;
    if (isComplete && (!isUngrouped || ungrouped === undefined || ungrouped.includes(digits))) matchEnd = end;
  }
  return matchEnd;
}
