/** Character codes and classes of personal data. */

export const atSign: number = 0x40;
export const colon: number = 0x3a;
export const dot: number = 0x2e;
export const plus: number = 0x2b;
export const zero: number = 0x30;
const space = 0x20;
const noBreakSpace = 0xa0;
export const openParenthesis: number = 0x28;

/** True for a separator between words of a chain. */
export function isWordSeparator(code: number): boolean {
  return code === space || code === noBreakSpace;
}

export function isSpace(code: number): boolean {
  return code <= space || code === noBreakSpace || code === 0x2028 || code === 0x2029 || code === 0x3000;
}

export function isDigit(code: number): boolean {
  return code >= zero && code <= 0x39;
}

/** Latin letters, including accented letters. */
export function isLetter(code: number): boolean {
  const lower = code | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0xc0 && code <= 0x24f);
}

export function isAlphanumeric(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= 0x61 && lower <= 0x7a);
}

export function isWordCharacter(code: number): boolean {
  return isDigit(code) || isLetter(code);
}

export function isLocalPartCharacter(code: number): boolean {
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

export function isDomainCharacter(code: number): boolean {
  return isWordCharacter(code) || code === dot || code === 0x2d;
}

export function isHex(code: number): boolean {
  const lower = code | 0x20;
  return isDigit(code) || (lower >= 0x61 && lower <= 0x66);
}

export function isIpCharacter(code: number): boolean {
  return isHex(code) || code === colon || code === dot;
}

/** True for a separator between digits of a number. */
export function isNumberSeparator(code: number): boolean {
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

export function isCardSeparator(code: number): boolean {
  return isWordSeparator(code) || code === 0x2d;
}

/** True for a character that continues a number: a part of a longer number is no match. */
export function isNumberCharacter(code: number): boolean {
  return isWordCharacter(code) || code === dot || code === 0x2d || code === 0x2f || code === plus;
}
