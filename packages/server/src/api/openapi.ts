/** OpenAPI 3.1 document of the native API, from the schemas that check its requests. */
import type { Json, JsonObject } from "@statewright/core";
import * as z from "zod";
import type { Answer, ApiRoute, Operation, RequestHeader } from "./define-route.ts";
import { components } from "./schemas/common.ts";
import { problem } from "./schemas/problem.ts";

/** Creates the document. `version` is that of the server. */
export function createOpenApi(routes: readonly ApiRoute[], version: string): JsonObject {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:([a-z]+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: createOperation(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Statewright",
      version,
      description: "Native API of @statewright/server: threads, runs, interrupts, states and events of graphs.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/api" }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: tagNames.map((name) => ({ name })),
    paths,
    components: {
      schemas: createComponents(),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
      },
    },
  };
}

const tagNames = ["server", "graphs", "threads", "runs", "states", "events", "artifacts", "schedules"];

const refPrefix = "#/components/schemas/";

const jsonSchemaOptions = { io: "output", unrepresentable: "any", override: simplify } as const;

/** Removes what a reader does not need: the pattern of a format, and the dialect of each schema. */
function simplify({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
}

function createComponents(): JsonObject {
  const { schemas } = z.toJSONSchema(components, { ...jsonSchemaOptions, uri: (name) => refPrefix + name });
  const sorted = Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, schema]) => [name, removeDialect(schema)]));
}

function removeDialect(schema: z.core.JSONSchema.BaseSchema): JsonObject {
  const { $schema: _, $id: __, ...rest } = schema;
  return parseJson(rest);
}

/** Returns a JSON Schema as plain JSON, without undefined properties. */
function parseJson(value: unknown): JsonObject {
  return JSON.parse(JSON.stringify(value));
}

/** Reference to a named schema, or the schema itself. */
function toSchema(schema: z.ZodType): JsonObject {
  const name = components.get(schema)?.id;
  return name === undefined ? removeDialect(z.toJSONSchema(schema, jsonSchemaOptions)) : { $ref: refPrefix + name };
}

function createOperation({ operation, path, action, isRead }: ApiRoute): JsonObject {
  const { id, summary, tag, headers = [], query } = operation;
  const parameters = [...listPathParameters(path), ...listQueryParameters(query), ...headers.map(toHeaderParameter)];
  return {
    operationId: id,
    summary,
    tags: [tag],
    "x-action": action,
    "x-is-read": isRead,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...createRequestBody(operation),
    responses: createResponses(operation),
  };
}

function listPathParameters(path: string): readonly JsonObject[] {
  return [...path.matchAll(/:([a-z]+)/g)].map(([, name = ""]) => ({
    ...{ name, in: "path", required: true },
    schema: { type: "string", minLength: 1, maxLength: 128 },
  }));
}

function listQueryParameters(query: z.ZodType | undefined): readonly JsonObject[] {
  if (!(query instanceof z.ZodObject)) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(query, jsonSchemaOptions);
  return Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = parseJson(schema);
    const isList = rest["type"] === "array";
    return {
      ...{ name: name === "metadata" ? "metadata.{key}" : name, in: "query", required: required.includes(name) },
      ...(description === undefined ? {} : { description }),
      ...(isList ? { style: "form", explode: false } : {}),
      schema: name === "metadata" ? { type: "string" } : rest,
    };
  });
}

const headerTexts: { readonly [Name in RequestHeader]: readonly [name: string, description: string] } = {
  "idempotency-key": ["Idempotency-Key", "The same key and body again have the effect of a single request"],
  prefer: ["Prefer", "`wait=N`: waits for the outcome, at most N and 60 seconds"],
  "if-match": ["If-Match", "ETag of the state: refuses the change with 412 when the head is another checkpoint"],
  "if-none-match": ["If-None-Match", "ETag of an earlier answer"],
  "last-event-id": ["Last-Event-ID", "Number of the last durable event that was read; wins over `after`"],
  range: ["Range", "A single range of bytes"],
};

function toHeaderParameter(header: RequestHeader): JsonObject {
  const [name, description] = headerTexts[header];
  return { name, in: "header", required: false, description, schema: { type: "string" } };
}

function createRequestBody({ body, bodyType }: Operation): JsonObject {
  if (bodyType !== undefined) return { requestBody: { required: true, content: { [bodyType]: {} } } };
  if (body === undefined) return {};
  const required = !body.safeParse({}).success;
  return { requestBody: { required, content: { "application/json": { schema: toSchema(body) } } } };
}

function createResponses({ answers, frames }: Operation): JsonObject {
  const responses: Record<string, Json> = {};
  for (const [status, answer] of Object.entries(answers)) responses[status] = createResponse(answer);
  if (frames !== undefined) responses["200"] = addFrames(answers[200], frames);
  responses["default"] = {
    description: "A failure",
    content: { "application/problem+json": { schema: toSchema(problem) } },
  };
  return responses;
}

function createResponse({ description, schema, mediaType, headers = [] }: Answer): JsonObject {
  const content =
    schema === undefined
      ? mediaType === undefined
        ? undefined
        : { [mediaType]: {} }
      : { "application/json": { schema: toSchema(schema) } };
  const headerSchemas = headers.map((name) => [name, { schema: { type: "string" } }]);
  return {
    description,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headerSchemas) }),
    ...(content === undefined ? {} : { content }),
  };
}

/** Adds the stream of server-sent events to the answer 200. `x-frames` has the data of a frame by its event name. */
function addFrames(answer: Answer | undefined, frames: NonNullable<Operation["frames"]>): JsonObject {
  const base = createResponse(answer ?? { description: "Server-sent events" });
  const known = base["content"];
  const xFrames = Object.fromEntries(Object.entries(frames).map(([name, schema]) => [name, toSchema(schema)]));
  return {
    ...base,
    content: {
      ...(typeof known === "object" && known !== null && !Array.isArray(known) ? known : {}),
      "text/event-stream": { schema: { type: "string" }, "x-frames": xFrames },
    },
  };
}
