/** Control characters (cursor, screen, colour), bidirectional overrides and line separators. */
const controlChars =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression lists the characters to escape
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/**
 * Escapes control characters of a text as `\u001b`, for terminals and logs; line feeds and tabs stay. Use on text
 * from names, models and tools.
 */
export function escapeControlChars(text: string): string {
  return text.replace(controlChars, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
