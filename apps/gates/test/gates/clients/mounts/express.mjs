// @boundaries-ignore installed by the gate
import { getRequestListener } from "@hono/node-server";
// @boundaries-ignore installed by the gate
import express from "express";
import { server } from "./server.mjs";

const app = express();
// Before express.json() and other body parsers.
app.all("/agents/{*path}", getRequestListener(server.fetch));
app.listen(3000, "127.0.0.1");
