import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** In development the page and the server have one origin: Vite passes the requests on. */
export default defineConfig({
  plugins: [react()],
  server: { proxy: { "/ui": "http://127.0.0.1:4270", "/api": "http://127.0.0.1:4270" } },
});
