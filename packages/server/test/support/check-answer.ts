/** Checks answers of the native API against its OpenAPI document. */
import { packageVersion } from "@statewright/core/adapter";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import * as z from "zod";
import { createNativeApi } from "../../src/api/native-api.ts";

/** Native API without a server, for its routes and its document. */
export const nativeApi = createNativeApi({
  getInfo: () => ({ name: "statewright", version: packageVersion, role: "serve", protocols: [], limits: {} }),
});

/** OpenAPI document, as a server shows it. */
export const openApi: unknown = JSON.parse(JSON.stringify(nativeApi.getDocument()));

const answerSchema = z.object({ content: z.record(z.string(), z.unknown()).optional() });
const responsesOf = z.object({ responses: z.record(z.string(), answerSchema) });
const documentSchema = z.object({ paths: z.record(z.string(), z.record(z.string(), responsesOf)) });
const { paths } = documentSchema.parse(openApi);

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(z.record(z.string(), z.unknown()).parse(openApi), "openapi");

/** Names of the operations that requests of this process have reached. */
export const reachedOperations: Set<string> = new Set();

interface Operation {
  readonly id: string;
  readonly path: string;
  readonly method: string;
}

/** Finds the operation of a request; a path without parameters wins. */
function findOperation(method: string, pathname: string): Operation | undefined {
  const fits = nativeApi.routes.filter((route) => {
    const pattern = route.path.replaceAll(/:[a-z]+/g, "[^/]+");
    return route.method === method && new RegExp(`^/api${pattern}$`).test(pathname);
  });
  const [route] = fits.sort((one, other) => one.path.split(":").length - other.path.split(":").length);
  if (route === undefined) return undefined;
  return {
    id: route.operation.id,
    path: route.path.replaceAll(/:([a-z]+)/g, "{$1}"),
    method: method.toLowerCase(),
  };
}

function escapePointer(text: string): string {
  return encodeURIComponent(text.replaceAll("~", "~0").replaceAll("/", "~1"));
}

/**
 * Checks status, media type and JSON body of an answer against the document; `text` is undefined for a body that is not
 * read. Returns the name of the operation; undefined for a path outside of the native API.
 */
export function checkAnswer(
  { method, path }: { readonly method: string; readonly path: string },
  response: Response,
  text: string | undefined,
): string | undefined {
  const { pathname } = new URL(path, "http://localhost");
  const operation = findOperation(method, pathname);
  if (operation === undefined) return undefined;
  checkOperation(operation, response, text);
  if (response.status < 400) reachedOperations.add(operation.id);
  return operation.id;
}

function checkOperation(operation: Operation, response: Response, text: string | undefined): void {
  const { responses } = paths[operation.path]?.[operation.method] ?? { responses: {} };
  const status = String(response.status);
  const key = Object.hasOwn(responses, status) ? status : "default";
  const place = `${operation.id} ${status}`;
  if (key === "default") expect(response.status, place).toBeGreaterThanOrEqual(400);
  const type = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
  const { content = {} } = responses[key] ?? {};
  if (Object.keys(content).length === 0) {
    expect([place, text ?? ""]).toEqual([place, ""]);
    return;
  }
  const media = Object.hasOwn(content, type) ? type : "*/*";
  expect(Object.keys(content), `${place} has ${type}`).toContain(media);
  if (text === undefined || !isJsonType(type) || operation.id === "getOpenApi") return;
  const pointer = ["paths", operation.path, operation.method, "responses", key, "content", media, "schema"];
  const validate = ajv.getSchema(`openapi#/${pointer.map(escapePointer).join("/")}`);
  if (validate === undefined) throw new Error(`${place}: the document has no schema`);
  validate(JSON.parse(text));
  expect([place, validate.errors ?? []]).toEqual([place, []]);
}

/** True for the media type of JSON or of a problem. */
export function isJsonType(type: string): boolean {
  return /^application\/(?:problem\+)?json(?:;|$)/.test(type);
}
