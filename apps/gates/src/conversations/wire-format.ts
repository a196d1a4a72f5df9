/** Wire format of a provider, from the side of its server: request checks, and the encoding of replies. */
import type { WireReply } from "./random-reply.ts";

/** Decoded JSON object. */
export type Body = Readonly<Record<string, unknown>>;

/** Session of one conversation at a provider, with the items sent by the provider. */
export interface WireSession {
  /** Returns a sentence for each fault of a request. */
  readonly findProblems: (body: Body) => readonly string[];
  /** Encodes a reply as frames of the response stream. */
  readonly createFrames: (reply: WireReply) => readonly string[];
  /** Returns the body of an error response. */
  readonly createErrorBody: (status: number) => string;
}

/** Provider. */
export interface WireFormat {
  readonly open: () => WireSession;
}

/** Encodes a server-sent event. */
export function createFrame(data: unknown, event?: string): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** Returns the list at a key, or an empty list. */
export function getList(body: unknown, key: string): readonly Body[] {
  const list = toObject(body)[key];
  return Array.isArray(list) ? list.map(toObject) : [];
}

/** Returns an object unchanged; an empty object for any other value. */
export function toObject(value: unknown): Body {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : {};
}

/** Splits a text into two chunks, so that replies arrive in parts. */
export function splitText(text: string): readonly string[] {
  const letters = [...text];
  const middle = Math.ceil(letters.length / 2);
  return [letters.slice(0, middle).join(""), letters.slice(middle).join("")].filter((piece) => piece !== "");
}

/** Returns true if the text is a JSON object. */
export function isJsonObject(text: unknown): boolean {
  if (typeof text !== "string") return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
