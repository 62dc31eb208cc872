// The page of the API's documentation: Swagger's own interface, which this server serves.

const settings = JSON.parse(document.querySelector("#settings").textContent);

SwaggerUIBundle({
  ...settings,
  dom_id: "#docs",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis],
  requestInterceptor: (request) => {
    // A person who is signed in may try things out without a key.
    const token = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/)?.[1];
    if (token) request.headers["X-CSRFToken"] = token;
    return request;
  },
});
