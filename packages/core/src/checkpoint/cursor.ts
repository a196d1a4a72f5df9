/** Text form of cursors: the place of a row in the list, as base64url of JSON. */
import { fromBase64, toBase64 } from "../base/base64.ts";
import { invalidOption } from "../base/invalid-option.ts";

/** Parts of the cursor of each list. */
interface CursorParts {
  readonly listThreads: readonly [updatedAt: number, id: string];
  readonly listRuns: readonly [id: string, position: number];
  readonly listInterrupts: readonly [position: number];
  readonly listNotifications: readonly [position: number];
}

const cursorTypes: Readonly<Record<keyof CursorParts, readonly ("number" | "string")[]>> = {
  listThreads: ["number", "string"],
  listRuns: ["string", "number"],
  listInterrupts: ["number"],
  listNotifications: ["number"],
};

const asciiPattern = /^[\x20-\x7e]*$/;

/** Returns the cursor of a row: the text to pass as `before`. */
export function toCursor<List extends keyof CursorParts>(_list: List, parts: CursorParts[List]): string {
  const json = JSON.stringify(parts);
  // A list makes a cursor for each row, and nearly all ids are ASCII.
  const text = asciiPattern.test(json) ? btoa(json) : toBase64(new TextEncoder().encode(json));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Returns the parts of a cursor. Throws `invalid_option` for a text that is no cursor of the list. */
export function parseCursor<List extends keyof CursorParts>(
  list: List,
  cursor: string,
  { where, option }: { readonly where: string; readonly option: string } = { where: list, option: "before" },
): CursorParts[List] {
  const parts = parseParts(cursor);
  const types = cursorTypes[list];
  if (parts.length === types.length && parts.every((part, index) => typeof part === types[index]))
    return parts as CursorParts[List];
  throw invalidOption({
    where,
    option,
    expected: "a cursor of the same list",
    got: cursor,
    fix: "Pass the `cursor` of the last row of the previous page",
  });
}

function parseParts(cursor: string): readonly unknown[] {
  try {
    const bytes = fromBase64(cursor.replaceAll("-", "+").replaceAll("_", "/"));
    const parts: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return Array.isArray(parts) ? parts : [];
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError || error instanceof DOMException) return [];
    throw error;
  }
}
