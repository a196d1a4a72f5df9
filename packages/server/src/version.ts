/** Version of this package, shown by `GET /api/info` and the OpenAPI document. */
export const version = "0.1.0";
