// app/agents/[...path]/route.js
import { server } from "./server.mjs";

export const GET = server.fetch;
export const POST = server.fetch;
export const PATCH = server.fetch;
export const DELETE = server.fetch;
