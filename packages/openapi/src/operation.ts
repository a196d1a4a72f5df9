/** Operations of a document, and the request plan of each operation. */
import type { EffectClass, JsonObject } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { isJsonObject } from "@statewright/json-schema";
import { type Body, parseBody } from "./body.ts";
import { createPartError, type Document, getText, type Part, resolveRefs, toList, toMap } from "./document.ts";
import { listParameters, type Parameter, type ParameterSource } from "./parameters.ts";
import { createSchemaReader } from "./schema.ts";
import { type Credential, isCredential, listCredentials, type OpenApiAuth } from "./security.ts";

/** Operation of a document. */
export interface OpenApiOperation {
  /** The `operationId`, if any. */
  readonly id: string | undefined;
  /** HTTP method in upper case. */
  readonly method: string;
  /** Path template of the document, such as `/pets/{id}`. */
  readonly path: string;
  readonly tags: readonly string[];
  readonly summary: string | undefined;
  readonly description: string | undefined;
  readonly deprecated: boolean;
}

/** Operation with its parts of the document. */
export interface DocumentOperation {
  readonly operation: OpenApiOperation;
  readonly part: Part;
  readonly pathPart: Part;
}

/** Filter of operations: an operation must match all given criteria. */
export interface OperationFilter {
  readonly ids?: readonly string[];
  readonly tags?: readonly string[];
  /** HTTP methods in upper or lower case. */
  readonly methods?: readonly string[];
  /** Returns true for the operations to keep. */
  readonly where?: (operation: OpenApiOperation) => boolean;
}

/** Plan to convert a tool call to a request. */
export interface RequestPlan {
  readonly base: URL;
  readonly parameters: readonly Parameter[];
  readonly body: Body | undefined;
  readonly credentials: readonly Credential[];
  readonly input: JsonObject;
}

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** Returns the default effect and access of a method. */
export function getMethodDefaults(method: string): {
  readonly effect: EffectClass;
  readonly access: "read" | "write" | "destructive";
} {
  if (["GET", "HEAD", "OPTIONS", "TRACE"].includes(method)) return { effect: "idempotent", access: "read" };
  if (method === "DELETE") return { effect: "idempotent", access: "destructive" };
  return { effect: method === "PUT" ? "idempotent" : "once", access: "write" };
}

/** Formats an operation for messages. */
export function formatOperation({ id, method, path }: OpenApiOperation): string {
  return `${method} ${path}${id === undefined ? "" : ` (${id})`}`;
}

/** Lists the operations of a filter. Throws `invalid_option` for an unknown id or tag. */
export function listOperations(document: Document, filter: OperationFilter): readonly DocumentOperation[] {
  const all = Object.entries(toMap(document.root["paths"])).flatMap(([path, pathItem]) => {
    if (!path.startsWith("/")) return [];
    const pathPart = resolveRefs(document, pathItem, `the path ${path}`);
    return methods.flatMap((method): readonly DocumentOperation[] => {
      const part = pathPart[method];
      return isJsonObject(part) ? [{ operation: toOperation(part, method.toUpperCase(), path), part, pathPart }] : [];
    });
  });
  const { ids, tags, where } = filter;
  checkKnown(
    "operation",
    ids,
    all.flatMap(({ operation: { id } }) => (id === undefined ? [] : [id])),
  );
  checkKnown("tag", tags, [...new Set(all.flatMap(({ operation }) => operation.tags))]);
  const wantedMethods = filter.methods?.map((method) => method.toUpperCase());
  return all.filter(
    ({ operation }) =>
      (ids === undefined || (operation.id !== undefined && ids.includes(operation.id))) &&
      (tags === undefined || operation.tags.some((tag) => tags.includes(tag))) &&
      (wantedMethods === undefined || wantedMethods.includes(operation.method)) &&
      (where === undefined || where(operation)),
  );
}

/** Creates the request plan of an operation. Throws `invalid_tool` for an invalid part. */
export function createRequestPlan(
  document: Document,
  { operation, part, pathPart }: DocumentOperation,
  options: {
    readonly baseUrl: string | undefined;
    readonly auth: Readonly<Record<string, OpenApiAuth>> | false;
    /** Headers set by the options; not arguments of the model. */
    readonly ownHeaders: readonly string[];
  },
): RequestPlan {
  const operationName = formatOperation(operation);
  const schemas = createSchemaReader(document, operationName);
  const ownHeaders = new Set(options.ownHeaders.map((name) => name.toLowerCase()));
  const credentials = listCredentials(document, part["security"], options.auth, operationName);
  const isReserved: ParameterSource["isReserved"] = (location, name) =>
    isCredential(credentials, location, name) || (location === "header" && ownHeaders.has(name.toLowerCase()));
  const parameters = listParameters({ document, schemas, operationName, isReserved }, [
    pathPart["parameters"],
    part["parameters"],
  ]);
  const body = parseBody(document, part["requestBody"], schemas, operationName);
  checkPath(document, operation, parameters, operationName);
  const properties = parameters.map(({ argument, schema }) => [argument, schema] as const);
  const required = parameters.filter((parameter) => parameter.required).map(({ argument }) => argument);
  const input = schemas.toObjectSchema(
    Object.fromEntries(body === undefined ? properties : [...properties, ["body", body.schema]]),
    body?.required === true ? [...required, "body"] : required,
  );
  return {
    base: resolveBaseUrl(document, [part, pathPart, document.root], options.baseUrl, operationName),
    parameters,
    body,
    credentials,
    input,
  };
}

function toOperation(part: Part, method: string, path: string): OpenApiOperation {
  return Object.freeze({
    id: getText(part, "operationId"),
    method,
    path,
    tags: Object.freeze(toList(part["tags"]).filter((tag) => typeof tag === "string")),
    summary: getText(part, "summary"),
    description: getText(part, "description"),
    deprecated: part["deprecated"] === true,
  });
}

/** Throws `invalid_tool` for a path placeholder without a parameter, which would be sent literally. */
function checkPath(
  document: Document,
  { path }: OpenApiOperation,
  parameters: readonly Parameter[],
  operationName: string,
): void {
  for (const [, name = ""] of path.matchAll(/\{([^{}]*)\}/g)) {
    if (parameters.some((parameter) => parameter.place === "path" && parameter.name === name)) continue;
    throw createPartError(document, operationName, `has {${name}} in its path, but no such parameter`);
  }
}

/** Resolves the base URL: the option, or the first server nearest to the operation. */
function resolveBaseUrl(
  document: Document,
  parts: readonly Part[],
  baseUrl: string | undefined,
  operationName: string,
): URL {
  const [server] = parts.flatMap((part) => toList(part["servers"]).slice(0, 1)).filter(isJsonObject);
  const text = baseUrl ?? (server === undefined ? undefined : expandServerUrl(server));
  const base = text === undefined ? null : URL.parse(text, document.url?.href);
  const isWeb = base !== null && (base.protocol === "http:" || base.protocol === "https:");
  if (isWeb && base.username === "" && base.password === "") return base;
  throw invalidOption({
    where: `loadOpenApi: ${operationName} of ${document.source}`,
    expected: "an http or https server URL without user name and password",
    got: text,
    fix: "Set baseUrl, without user name and password",
  });
}

function expandServerUrl(server: Part): string | undefined {
  const variables = toMap(server["variables"]);
  return getText(server, "url")?.replace(/\{([^{}]*)\}/g, (placeholder, name: string) => {
    const preset = toMap(variables[name])["default"];
    return typeof preset === "string" ? preset : placeholder;
  });
}

function checkKnown(what: string, wanted: readonly string[] | undefined, known: readonly string[]): void {
  const unknownName = wanted?.find((name) => !known.includes(name));
  if (unknownName === undefined) return;
  const shown = known.slice(0, 50).join(", ");
  throw invalidOption({
    where: "loadOpenApi",
    option: "operations",
    expected: `a filter with ${what}s of the document`,
    found: `the unknown ${what} "${unknownName}"`,
    fix:
      known.length === 0
        ? `Remove the filter: the document has no ${what}`
        : `Use one of ${shown}${known.length > 50 ? ", and more" : ""}`,
  });
}
