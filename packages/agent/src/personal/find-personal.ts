/**
 * Finds personal data in texts: e-mail addresses, card numbers, IBANs, phone numbers and IP addresses. Scans a text
 * once. Each match lies within a single chain of words (see `streamChains`), so that a text can be processed in pieces.
 */

import {
  atSign,
  colon,
  dot,
  isAlphanumeric,
  isDigit,
  isDomainCharacter,
  isHex,
  isIpCharacter,
  isLetter,
  isLocalPartCharacter,
  isSpace,
  isWordCharacter,
  isWordSeparator,
  zero,
} from "./characters.ts";
import { findNumber, isNumberStart } from "./find-number.ts";
import type { PersonalKind, PersonalMatch } from "./personal-kind.ts";

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
      const number = findNumber({ text, index, end, before }, kinds);
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
