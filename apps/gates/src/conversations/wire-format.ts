/** A provider's wire format, as its server keeps it: what it refuses in a request, and how it says an answer. */
import type { WireReply } from "./random-reply.ts";

/** A decoded JSON object. */
export type Body = Readonly<Record<string, unknown>>;

/** One conversation at a provider: it knows what it said itself. */
export interface WireSession {
  /** What the provider would refuse in a request, in sentences. */
  readonly problems: (body: Body) => readonly string[];
  /** The frames of an answer, each as it stands in the stream. */
  readonly frames: (reply: WireReply) => readonly string[];
  /** The body of a refusal. */
  readonly refusal: (status: number) => string;
}

/** A provider. */
export interface WireFormat {
  readonly open: () => WireSession;
}

/** A server-sent event. */
export function frame(data: unknown, event?: string): string {
  return `${event === undefined ? "" : `event: ${event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** The list at a key, or an empty one. */
export function listAt(body: unknown, key: string): readonly Body[] {
  const list = objectOf(body)[key];
  return Array.isArray(list) ? list.map(objectOf) : [];
}

/** A value as an object; an empty one for anything else. */
export function objectOf(value: unknown): Body {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : {};
}

/** Text in two pieces, so that answers come in parts. */
export function pieces(text: string): readonly string[] {
  const letters = [...text];
  const middle = Math.ceil(letters.length / 2);
  return [letters.slice(0, middle).join(""), letters.slice(middle).join("")].filter((piece) => piece !== "");
}

/** Whether a text is that of a JSON object. */
export function isJsonObject(text: unknown): boolean {
  if (typeof text !== "string") return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
