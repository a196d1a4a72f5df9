/** The operations of a document: which there are, and what each of them takes. */
import type { EffectClass, JsonObject } from "@statewright/core";
import { StatewrightError } from "@statewright/core";
import { isObject } from "../protocol.ts";
import { type Body, bodyOf } from "./body.ts";
import { type Document, followed, listOf, mapOf, type Part, textAt, unfitPart } from "./document.ts";
import { type Parameter, parametersOf } from "./parameters.ts";
import { schemaReader } from "./schema.ts";
import { type Credential, credentialsOf, isCredential, type OpenApiAuth } from "./security.ts";

/** What a document says of an operation. */
export interface OpenApiOperation {
  /** Its `operationId`; absent where the document gives none. */
  readonly id: string | undefined;
  /** In capitals. */
  readonly method: string;
  /** As it stands in the document, such as `/pets/{id}`. */
  readonly path: string;
  readonly tags: readonly string[];
  readonly summary: string | undefined;
  readonly description: string | undefined;
  readonly deprecated: boolean;
}

/** An operation where it stands in its document. */
export interface FoundOperation {
  readonly operation: OpenApiOperation;
  readonly part: Part;
  readonly pathPart: Part;
}

/** Which operations become tools: those to which all that is given applies. */
export interface OperationFilter {
  readonly ids?: readonly string[];
  readonly tags?: readonly string[];
  /** In capitals or small letters. */
  readonly methods?: readonly string[];
  readonly where?: (operation: OpenApiOperation) => boolean;
}

/** How a call becomes a request. */
export interface RequestPlan {
  readonly base: URL;
  readonly parameters: readonly Parameter[];
  readonly body: Body | undefined;
  readonly credentials: readonly Credential[];
  readonly input: JsonObject;
}

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** What is known of an operation by its method. */
export function natureOf(method: string): {
  readonly effect: EffectClass;
  readonly access: "read" | "write" | "destructive";
} {
  if (["GET", "HEAD", "OPTIONS", "TRACE"].includes(method)) return { effect: "idempotent", access: "read" };
  if (method === "DELETE") return { effect: "idempotent", access: "destructive" };
  return { effect: method === "PUT" ? "idempotent" : "once", access: "write" };
}

/** How people find an operation in its document. */
export function nameOf({ id, method, path }: OpenApiOperation): string {
  return `${method} ${path}${id === undefined ? "" : ` (${id})`}`;
}

/** The operations that a filter leaves. Throws `invalid_option` for an id or a tag that no operation has. */
export function operationsOf(document: Document, filter: OperationFilter): readonly FoundOperation[] {
  const all = Object.entries(mapOf(document.root["paths"])).flatMap(([path, given]) => {
    if (!path.startsWith("/")) return [];
    const pathPart = followed(document, given, `the path ${path}`);
    return methods.flatMap((method): readonly FoundOperation[] => {
      const part = pathPart[method];
      return isObject(part) ? [{ operation: operationOf(part, method.toUpperCase(), path), part, pathPart }] : [];
    });
  });
  const { ids, tags, where } = filter;
  checkKnown(
    "operation",
    ids,
    all.flatMap(({ operation: { id } }) => (id === undefined ? [] : [id])),
  );
  checkKnown("tag", tags, [...new Set(all.flatMap(({ operation }) => operation.tags))]);
  const wanted = filter.methods?.map((method) => method.toUpperCase());
  return all.filter(
    ({ operation }) =>
      (ids === undefined || (operation.id !== undefined && ids.includes(operation.id))) &&
      (tags === undefined || operation.tags.some((tag) => tags.includes(tag))) &&
      (wanted === undefined || wanted.includes(operation.method)) &&
      (where === undefined || where(operation)),
  );
}

/** What it takes to ask an operation. Throws `invalid_tool` for a part that cannot be read. */
export function planOf(
  document: Document,
  { operation, part, pathPart }: FoundOperation,
  options: {
    readonly baseUrl: string | undefined;
    readonly auth: Readonly<Record<string, OpenApiAuth>> | false;
    /** Headers that are sent anyway: none of them is the model's to give. */
    readonly ownHeaders: readonly string[];
  },
): RequestPlan {
  const where = nameOf(operation);
  const schemas = schemaReader(document, where);
  const ownHeaders = new Set(options.ownHeaders.map((name) => name.toLowerCase()));
  const credentials = credentialsOf(document, part["security"], options.auth, where);
  const parameters = parametersOf(
    document,
    [pathPart["parameters"], part["parameters"]],
    schemas,
    where,
    (place, name) =>
      isCredential(credentials, place, name) || (place === "header" && ownHeaders.has(name.toLowerCase())),
  );
  const body = bodyOf(document, part["requestBody"], schemas, where);
  checkPath(document, operation, parameters, where);
  const properties = parameters.map(({ argument, schema }) => [argument, schema] as const);
  const required = parameters.filter((parameter) => parameter.required).map(({ argument }) => argument);
  const input = schemas.object(
    Object.fromEntries(body === undefined ? properties : [...properties, ["body", body.schema]]),
    body?.required === true ? [...required, "body"] : required,
  );
  return {
    base: baseOf(document, [part, pathPart, document.root], options.baseUrl, where),
    parameters,
    body,
    credentials,
    input,
  };
}

function operationOf(part: Part, method: string, path: string): OpenApiOperation {
  return Object.freeze({
    id: textAt(part, "operationId"),
    method,
    path,
    tags: Object.freeze(listOf(part["tags"]).filter((tag) => typeof tag === "string")),
    summary: textAt(part, "summary"),
    description: textAt(part, "description"),
    deprecated: part["deprecated"] === true,
  });
}

/** A part of a path that nothing fills in would be asked for as it stands. */
function checkPath(
  document: Document,
  { path }: OpenApiOperation,
  parameters: readonly Parameter[],
  where: string,
): void {
  for (const [, name = ""] of path.matchAll(/\{([^{}]*)\}/g)) {
    if (parameters.some((parameter) => parameter.place === "path" && parameter.name === name)) continue;
    throw unfitPart(document, where, `has {${name}} in its path and no parameter for it`);
  }
}

/** Where an operation is asked: where the caller says, or the first server that stands next to it. */
function baseOf(document: Document, parts: readonly Part[], baseUrl: string | undefined, where: string): URL {
  const [server] = parts.flatMap((part) => listOf(part["servers"]).slice(0, 1)).filter(isObject);
  const text = baseUrl ?? (server === undefined ? undefined : serverText(server));
  const base = text === undefined ? null : URL.parse(text, document.url?.href);
  const isWeb = base !== null && (base.protocol === "http:" || base.protocol === "https:");
  if (isWeb && base.username === "" && base.password === "") return base;
  throw new StatewrightError("invalid_option", {
    what: `there is no address of http or https at which ${where} of ${document.from} could be asked`,
    next: "Give baseUrl, without a name and a password in it",
  });
}

function serverText(server: Part): string | undefined {
  const variables = mapOf(server["variables"]);
  return textAt(server, "url")?.replace(/\{([^{}]*)\}/g, (whole, name: string) => {
    const preset = mapOf(variables[name])["default"];
    return typeof preset === "string" ? preset : whole;
  });
}

function checkKnown(what: string, given: readonly string[] | undefined, known: readonly string[]): void {
  const stray = given?.find((name) => !known.includes(name));
  if (stray === undefined) return;
  const shown = known.slice(0, 50).join(", ");
  throw new StatewrightError("invalid_option", {
    what: `the document has no ${what} "${stray}"`,
    next: known.length === 0 ? `It names no ${what}` : `There are ${shown}${known.length > 50 ? ", and more" : ""}`,
  });
}
