/** Random requests to the routes of a protocol: valid ones, changed ones, and ones that fit nothing. */
import type { ServerRoute } from "@statewright/server";
import type { Chance } from "@statewright/testing";
import { createFromSchema, createHostileText, createHostileValue, mutateJson } from "./hostile-json.ts";
import { createLangGraphBody, createUiBody } from "./wire-bodies.ts";

/** Protocol of the fuzz. The two forms of the LangGraph protocol are one protocol of the server. */
export type FuzzedProtocol = "api" | "langgraph" | "langgraph-v2" | "ai-sdk";

/** Names of all fuzzed protocols. */
export const fuzzedProtocols: readonly FuzzedProtocol[] = ["api", "langgraph", "langgraph-v2", "ai-sdk"];

/** Lists the routes of a protocol. */
export function listRoutes(protocol: FuzzedProtocol, routes: readonly ServerRoute[]): readonly ServerRoute[] {
  const isStreaming = ({ path }: ServerRoute): boolean => /\/(?:commands|stream\/events)$/.test(path);
  if (protocol === "langgraph-v2") return routes.filter(isStreaming);
  return routes.filter((route) => route.protocol === protocol && !isStreaming(route));
}

/** Request before it is sent. */
export interface RandomRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/** What the requests are made from. */
export interface RequestSources {
  readonly protocol: FuzzedProtocol;
  readonly routes: readonly ServerRoute[];
  /** OpenAPI document of the native API. */
  readonly document: unknown;
  readonly chance: Chance;
  /** Texts of earlier responses. */
  readonly texts: readonly string[];
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND", "toString"];

const namedTexts: Readonly<Record<string, readonly string[]>> = {
  graph: ["assistant", "assistant", "assistant", "assistant", "review", "nobody"],
  assistant: ["assistant", "assistant", "assistant", "review", "nobody"],
  thread: ["t1", "t1", "t2", "t2", "t3", "fresh"],
  id: ["t1", "m1", "fresh", "s1"],
  checkpoint: ["000000000001", "000000000003", "1", "2", "999"],
  message: ["m1", "m2", "nobody"],
  branch: ["main", "b1", "nobody"],
  name: ["b1", "approve", "transfer"],
  key: ["k1", "k2"],
  text: ["hello", "transfer", "lookup sea", "fail"],
  role: ["user", "assistant"],
  schedule: ["s1", "nobody"],
  cron: ["0 9 * * *", "* * * * *", "61 9 * * *"],
  timeZone: ["UTC", "Europe/Berlin", "Mars/Base"],
};

/** Forms of ids that only responses have. */
const idForms: Readonly<Record<string, RegExp>> = { run: /^run_/, interrupt: /^(?:b[^:]*\.)?\d+:\d+/, call: /call/ };

/** Picks a text: one of the name, one of an earlier response, or seldom a hostile one. */
function createTextPicker({ chance, texts }: RequestSources): (name: string) => string {
  return (name) => {
    if (chance.flip(0.06)) return createHostileText(chance);
    const named = Object.hasOwn(namedTexts, name) ? (namedTexts[name] ?? []) : [];
    if (named.length > 0 && chance.flip(0.9)) return chance.pick(named);
    const fitting = texts.filter((text) => idForms[name]?.test(text));
    if (fitting.length > 0 && chance.flip(0.9)) return chance.pick(fitting);
    return texts.length > 0 && chance.flip(0.7) ? chance.pick(texts) : chance.pick(["t1", "a", "b1"]);
  };
}

/** Creates the next request. Seldom it is to no route, or without a valid token. */
export function createRandomRequest(sources: RequestSources): RandomRequest {
  const { chance, routes } = sources;
  const route = chance.pick(routes);
  const pick = createTextPicker(sources);
  const method = chance.flip(0.04) ? chance.pick(methods) : route.method;
  const path = createPath(route, pick, sources);
  const body = method === "GET" || method === "HEAD" ? undefined : createBodyText(route, pick, sources);
  return { method, path, body, headers: createHeaders(body !== undefined, pick, chance) };
}

function createPath({ path, protocol }: ServerRoute, pick: (name: string) => string, sources: RequestSources): string {
  const { chance } = sources;
  const filled = path.replaceAll(/:([a-zA-Z]+)/g, (_all, name: string) => encodeSegment(pick(name), chance));
  const query = new URLSearchParams();
  const names =
    protocol === "api"
      ? listQueryNames(sources.document, path)
      : [
          "stream_mode",
          "limit",
          "offset",
          "status",
          "wait",
          "action",
          "subgraphs",
          "cancel_on_disconnect",
          "namespace",
          "key",
        ];
  for (const name of names) if (chance.flip(0.2)) query.append(name, createQueryValue(name, pick, chance));
  if (chance.flip(0.03)) query.append(createHostileText(chance), createHostileText(chance));
  const text = chance.flip(0.01) ? "%zz=%ff&&=" : query.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

function encodeSegment(text: string, chance: Chance): string {
  return chance.flip(0.02) ? chance.pick(["%zz", "%2e%2e", "%00", "a%2Fb", ""]) : encodeURIComponent(text);
}

function createQueryValue(name: string, pick: (name: string) => string, chance: Chance): string {
  return chance.pick([
    pick(name),
    String(chance.getInteger(30)),
    "idle",
    "true",
    chance.pick(["values", "messages", "updates", "all", "interrupt", "rollback", "queued"]),
    createHostileText(chance),
  ]);
}

function listQueryNames(document: unknown, path: string): readonly string[] {
  const parameters = findOperations(document, path).flatMap((operation) => readList(operation, "parameters"));
  return parameters.flatMap((parameter) => {
    const name = readField(parameter, "name");
    return readField(parameter, "in") === "query" && typeof name === "string" ? [name] : [];
  });
}

/** Operations of a path of the native API, by any method. */
function findOperations(document: unknown, path: string): readonly unknown[] {
  const named = path.replace(/^\/api/, "").replaceAll(/:([a-zA-Z]+)/g, "{$1}");
  const operations = readField(readField(document, "paths"), named);
  return typeof operations === "object" && operations !== null ? Object.values(operations) : [];
}

function createBodyText(
  route: ServerRoute,
  pick: (name: string) => string,
  sources: RequestSources,
): string | undefined {
  const { chance } = sources;
  if (chance.flip(0.03)) return chance.pick(["", "{", "[1,", "\u0000", '{"a":1}}', "NaN", '"text"', "{'a':1}"]);
  if (route.method === "DELETE" && chance.flip(0.7)) return undefined;
  let value = chance.flip(0.05) ? createHostileValue(chance) : createValidBody(route, pick, sources);
  while (chance.flip(0.45)) value = mutateJson(value, chance);
  return JSON.stringify(value);
}

function createValidBody(
  { method, path }: ServerRoute,
  pick: (name: string) => string,
  sources: RequestSources,
): unknown {
  const { protocol, document, chance } = sources;
  if (protocol === "langgraph" || protocol === "langgraph-v2") return createLangGraphBody(path, pick, chance);
  if (protocol === "ai-sdk") return createUiBody(path, pick, chance);
  const operation = readField(readField(readField(document, "paths"), toDocumentPath(path)), method.toLowerCase());
  const content = readField(readField(operation, "requestBody"), "content");
  const schema = readField(readField(content, "application/json"), "schema");
  const schemas = readField(readField(document, "components"), "schemas");
  if (schema === undefined) return {};
  return createFromSchema(schema, "body", { chance, pickText: pick, schemas: isRecord(schemas) ? schemas : {} });
}

function toDocumentPath(path: string): string {
  return path.replace(/^\/api/, "").replaceAll(/:([a-zA-Z]+)/g, "{$1}");
}

function createHeaders(
  hasBody: boolean,
  pick: (name: string) => string,
  chance: Chance,
): Readonly<Record<string, string>> {
  const maybe = (probability: number, headers: Readonly<Record<string, string>>): object =>
    chance.flip(probability) ? headers : {};
  return {
    ...(hasBody ? { "content-type": "application/json" } : {}),
    ...maybe(0.02, { "content-type": chance.pick(["text/plain", "application/octet-stream", "a/b;c", "image/png"]) }),
    ...maybe(0.1, { accept: "text/event-stream" }),
    ...maybe(0.05, { prefer: chance.pick(["wait=5", "wait=0", "wait=1e9", "wait=-1", "respond-async", "wait"]) }),
    ...maybe(0.05, { "idempotency-key": toHeader(pick("key")) }),
    ...maybe(0.05, { "if-match": toHeader(`"${pick("checkpoint")}"`) }),
    ...maybe(0.05, { "if-none-match": toHeader(pick("checkpoint")) }),
    ...maybe(0.1, { "last-event-id": toHeader(chance.pick(["-1", "0", "3", "3.1", "99999999", "x", pick("run")])) }),
    ...maybe(0.03, { range: chance.pick(["bytes=0-3", "bytes=5-", "bytes=-2", "bytes=9-1", "x"]) }),
    ...maybe(0.02, { "x-request-id": toHeader(pick("run")) }),
    ...maybe(0.02, { origin: chance.pick(["null", "http://localhost", "https://evil.example"]) }),
  };
}

/** Headers hold Latin letters only. */
function toHeader(text: string): string {
  return text
    .replaceAll(/[^\u0020-\u007e]/g, "?")
    .trim()
    .slice(0, 2_000);
}

function readField(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function readList(value: unknown, name: string): readonly unknown[] {
  const list = readField(value, name);
  return Array.isArray(list) ? list : [];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
