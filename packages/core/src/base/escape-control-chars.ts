/** Text for people's terminals and logs: what would steer them is shown and not obeyed. */

/** Signs that move a cursor, clear a screen or set a colour, those that turn text around, and those that end a line unseen. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is spelt out
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** A text with its control characters spelt out, as `\u001b`; line feeds and tabs stay. For whatever names, models and tools say. */
export function printable(text: string): string {
  return text.replace(steering, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
