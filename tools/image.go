package tools

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // for image.Decode
	"image/jpeg"
	"image/png"
	"net/http"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // for image.Decode
)

// The bounds of a reply's images are those of Anthropic's API, which are the smallest of all
// providers. If a conversation holds a larger image, a provider refuses every later request of it.
// In a conversation of more than 20 images, a side may have 2,000 pixels.
const (
	maxImageSize  = 5 << 20 / 4 * 3 // bytes: 5 MiB in base64
	maxImageSide  = 2000            // pixels
	maxImages     = 20
	maxImagesSize = 15 << 20 // bytes of all images of a reply: a request may have 32 MB
)

// The bounds of pictures that are scaled down. A picture is decoded into at most 8 bytes for each
// pixel, so a header that promises more pixels is refused before anything is decoded.
const (
	maxPictureSize = 32 << 20 // bytes of the file
	maxPixels      = 32 << 20
)

// imageType returns the MIME type of a file by its beginning, if models can see pictures of that
// type. Otherwise it returns "".
func imageType(begin []byte) string {
	switch kind := http.DetectContentType(begin); kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return kind
	}
	return ""
}

// newImage returns a picture as an Image, and the picture's own size. If the picture is too large
// for a model, the Image is a smaller one. The error says why it cannot be shown.
func newImage(data []byte) (i Image, own, shown image.Point, err error) {
	kind := imageType(data)
	switch {
	case kind == "":
		return i, own, shown, errors.New("it is not a PNG, JPEG, GIF or WebP")
	case len(data) > maxPictureSize:
		return i, own, shown, errPictureTooLarge(int64(len(data)))
	}
	if own, err = pictureSize(data); err != nil {
		return i, own, shown, err
	}
	// A picture that fits is decoded too: a provider refuses a broken one in every later request.
	picture, _, err := image.Decode(bytes.NewReader(data))
	switch {
	case err != nil:
		return i, own, shown, fmt.Errorf("it is broken: %w", err)
	case len(data) <= maxImageSize && max(own.X, own.Y) <= maxImageSide:
		return Image{MIME: kind, Data: data}, own, own, nil
	}
	i, shown, err = scaleDown(picture, kind)
	return i, own, shown, err
}

// pictureSize returns a picture's size as its header says. It returns an error if there are too
// many pixels to decode.
func pictureSize(data []byte) (image.Point, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	size := image.Pt(c.Width, c.Height)
	switch {
	case err != nil:
		return size, fmt.Errorf("it is broken: %w", err)
	case size.X <= 0 || size.Y <= 0:
		return size, errors.New("it has no pixels")
	case int64(size.X)*int64(size.Y) > maxPixels:
		return size, fmt.Errorf("it has %d × %d pixels, and may have at most %d million: use a "+
			"program that scales it down", size.X, size.Y, maxPixels>>20)
	}
	return size, nil
}

// errPictureTooLarge is the error for a picture's file that is not read.
func errPictureTooLarge(size int64) error {
	return fmt.Errorf("it has %d bytes, and may have at most %d: use a program that scales it down",
		size, maxPictureSize)
}

// scaleDown returns a picture in a size that models see.
func scaleDown(picture image.Image, kind string) (Image, image.Point, error) {
	size := picture.Bounds().Size()
	longest := max(size.X, size.Y)
	for side := min(maxImageSide, longest); side > 0; side /= 2 {
		to := image.Pt(max(1, size.X*side/longest), max(1, size.Y*side/longest))
		picture = scale(picture, to)
		i, err := encode(picture, kind)
		if err != nil || len(i.Data) <= maxImageSize {
			return i, to, err
		}
	}
	return Image{}, image.Point{}, errors.New("it cannot be made small enough")
}

// scale returns a picture in a smaller size. It halves the picture until that size is near, so that
// each pixel counts, in less memory than draw.BiLinear takes.
func scale(picture image.Image, to image.Point) image.Image {
	for {
		size := picture.Bounds().Size()
		next := image.Pt(max(to.X, (size.X+1)/2), max(to.Y, (size.Y+1)/2))
		scaled := image.NewRGBA(image.Rectangle{Max: next})
		draw.ApproxBiLinear.Scale(scaled, scaled.Bounds(), picture, picture.Bounds(), draw.Src, nil)
		if picture = scaled; next == to {
			return picture
		}
	}
}

// encode returns a picture as a JPEG if it was one or, like most WebPs, is a photograph. Others
// become PNGs, which keep what is transparent and the edges of letters.
func encode(picture image.Image, kind string) (Image, error) {
	var b bytes.Buffer
	if kind == "image/jpeg" || kind == "image/webp" {
		opaque := image.NewRGBA(picture.Bounds())
		draw.Draw(opaque, opaque.Bounds(), image.White, image.Point{}, draw.Src)
		draw.Draw(opaque, opaque.Bounds(), picture, picture.Bounds().Min, draw.Over)
		err := jpeg.Encode(&b, opaque, &jpeg.Options{Quality: 90})
		return Image{MIME: "image/jpeg", Data: b.Bytes()}, err
	}
	err := png.Encode(&b, picture)
	return Image{MIME: "image/png", Data: b.Bytes()}, err
}

// show adds a picture to the reply. The note says what the model should know: that the picture is
// smaller than its own, or why it cannot be shown.
func (r *Reply) show(data []byte) (note string) {
	i, own, shown, err := newImage(data)
	total := len(i.Data)
	for _, other := range r.Images {
		total += len(other.Data)
	}
	switch {
	case err != nil:
	case len(r.Images) == maxImages:
		err = fmt.Errorf("a reply has at most %d pictures", maxImages)
	case total > maxImagesSize:
		err = fmt.Errorf("the pictures of a reply have at most %d bytes", maxImagesSize)
	}
	if err != nil {
		return fmt.Sprintf("[a picture is not shown: %v]\n", err)
	}
	r.Images = append(r.Images, i)
	if own != shown {
		return fmt.Sprintf("[a picture of %d × %d pixels is shown with %d × %d]\n", own.X, own.Y,
			shown.X, shown.Y)
	}
	return ""
}
