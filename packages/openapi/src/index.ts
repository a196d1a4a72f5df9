/** Statewright OpenAPI: the operations of an OpenAPI document as tools. */
export { loadOpenApi, type OpenApiOptions, type OpenApiToolParts, type OpenApiTools } from "./load-openapi.ts";
export type { OpenApiOperation, OperationFilter } from "./operation.ts";
export type { OpenApiAuth } from "./security.ts";
