/** Ids and names of calls that a provider takes: a history may come from another provider, whose ids look different. */
import { fingerprint } from "@statewright/core";

/**
 * What providers refuse, by the name of their client. A client that is not listed gets ids as they are: some (Kimi, for
 * one) want their own odd ids back.
 */
const idRules: readonly { readonly client: RegExp; readonly fits: RegExp; readonly length: number }[] = [
  { client: /mistral/, fits: /^[A-Za-z0-9]{9}$/, length: 9 },
  { client: /anthropic|bedrock/, fits: /^[A-Za-z0-9_-]{1,64}$/, length: 64 },
  { client: /^(?:openai|azure).*\.chat$/, fits: /^[A-Za-z0-9_.:-]{1,40}$/, length: 40 },
  { client: /^(?:openai|azure)/, fits: /^[A-Za-z0-9_.:-]{1,64}$/, length: 64 },
];

const nameFits = /^[A-Za-z0-9_-]{1,64}$/;

/** The id under which `client` is told about a call: unchanged when it fits, otherwise the same substitute every time. */
export function sentId(client: string, id: string): string {
  const rule = idRules.find((candidate) => candidate.client.test(client));
  if (rule === undefined || rule.fits.test(id)) return id;
  const mark = fingerprint(id);
  if (rule.length < 20) return mark.slice(-rule.length);
  return `${id.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, rule.length - mark.length - 1)}_${mark}`;
}

/** The name of a called tool as providers take it: a model may have called a name that no provider accepts as one. */
export function sentName(name: string): string {
  if (nameFits.test(name)) return name;
  return name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

/** Give every call an id that no other call of the conversation has: unchanged where it is free, else with a number. */
export function freeIds(taken: Iterable<string>): (id: string) => string {
  const used = new Set(taken);
  return (id) => {
    const base = id === "" ? "call" : id;
    let free = base;
    for (let count = 2; used.has(free); count++) free = `${base}_${count}`;
    used.add(free);
    return free;
  };
}
